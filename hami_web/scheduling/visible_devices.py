"""Which GPUs a container sees is the agent's answer, whatever image or manifest say.

A container's own environment wins over the agent's, so a variable that a user set would show it
every GPU of the node; and images of CUDA set it to all for containers that asked for none.
"""

from __future__ import annotations

from collections.abc import Sequence

from hami_web.core import annotations as keys
from hami_web.scheduling.reviewed import ReviewedContainer
from hami_web.scheduling.verdict import PatchOperation

_HARMLESS = (keys.NO_DEVICES, "none", "")


def changes_of(
    containers: Sequence[ReviewedContainer],
) -> tuple[list[PatchOperation], list[str]]:
    """Operations on the containers of a GPU Pod, and what to tell its user."""
    patch: list[PatchOperation] = []
    told: list[str] = []
    for item in containers:
        name = item.container.name
        found = _positions(item)
        if item.wants_gpu:
            patch += [PatchOperation("remove", f"{item.path}/env/{p}") for p in reversed(found)]
            if found:
                told.append(f"container {name}: removed {keys.VISIBLE_DEVICES}, which is ours")
        elif found:
            harmful = [p for p in found if _value(item, p) not in _HARMLESS]
            value = {"name": keys.VISIBLE_DEVICES, "value": keys.NO_DEVICES}
            patch += [PatchOperation("replace", f"{item.path}/env/{p}", value) for p in harmful]
            if harmful:
                told.append(
                    f"container {name}: {keys.VISIBLE_DEVICES} set to {keys.NO_DEVICES}, "
                    "since it asks for no GPU"
                )
        else:
            patch.append(_added(item))
    return patch, told


def _positions(item: ReviewedContainer) -> list[int]:
    env = item.container.env or []
    return [position for position, found in enumerate(env) if found.name == keys.VISIBLE_DEVICES]


def _value(item: ReviewedContainer, position: int) -> str | None:
    """None where the value comes from elsewhere."""
    return (item.container.env or [])[position].value


def _added(item: ReviewedContainer) -> PatchOperation:
    variable = {"name": keys.VISIBLE_DEVICES, "value": keys.NO_DEVICES}
    if item.container.env:
        return PatchOperation("add", f"{item.path}/env/-", variable)
    return PatchOperation("add", f"{item.path}/env", [variable])
