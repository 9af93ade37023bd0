"""A Pod as the demo reads it from the API server."""

from __future__ import annotations

from dataclasses import dataclass

from hami_web.core import annotations as keys
from hami_web.core.reservation import Reservation, decode_allocations
from hami_web.simulator.documents import JsonObject, lookup


@dataclass(frozen=True, slots=True)
class SeenPod:
    """``message`` is why the scheduler found no node, empty when it has not said so."""

    name: str
    uid: str
    node: str
    phase: str
    reservations: tuple[Reservation, ...]
    message: str

    @property
    def is_realized(self) -> bool:
        """Every device carries its runtime identity."""
        return bool(self.reservations) and all(item.identity for item in self.reservations)

    @property
    def places(self) -> str:
        """Profile and placement of each device, in words."""
        return ", ".join(f"{item.profile} at {item.placement}" for item in self.reservations)


def read_pod(document: JsonObject) -> SeenPod:
    """Take what the demo shows out of a Pod. Raises MalformedContract for a broken annotation."""
    annotations = lookup(document, "metadata.annotations") or {}
    conditions = lookup(document, "status.conditions") or []
    messages = [
        str(condition.get("message") or "")
        for condition in conditions
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False"
    ]
    return SeenPod(
        name=str(lookup(document, "metadata.name")),
        uid=str(lookup(document, "metadata.uid")),
        node=str(lookup(document, "spec.nodeName") or ""),
        phase=str(lookup(document, "status.phase") or ""),
        reservations=decode_allocations(str(annotations.get(keys.POD_MIG_ALLOCATIONS) or "")),
        message=messages[0] if messages else "",
    )
