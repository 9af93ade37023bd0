"""What annotation, node and mirror say of the same memory slices of a GPU, beside each other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from django.db import DatabaseError
from django.db.models import Q
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from hami_web.access.visibility import UNAVAILABLE
from hami_web.core.placement import Placement
from hami_web.inventory.models import BlockedInterval
from hami_web.reservations.models import LIVE, MigReservation, Phase
from hami_web.scheduling.records import GpuRecord

logger = logging.getLogger(__name__)

Sees = Callable[[str], bool]
DIFFERENCES: Final[dict[str, Promise]] = {
    "": _("agree"),
    "mirror lacks it": _("the mirror lacks it"),
    "only in mirror": _("only the mirror has it"),
    "pod": _("another Pod"),
    "profile": _("another profile"),
    "instance": _("another instance"),
}
"""Words of each difference; the empty code is none."""


@dataclass(frozen=True, slots=True)
class Told:
    """What one source says of a placement; empty texts where it says nothing."""

    namespace: str = ""
    pod: str = ""
    profile: str = ""
    mig_uuid: str = ""
    blocked: str = ""

    def words(self, sees: Sees) -> str:
        """Pod and profile, or why the memory slices are blocked, as far as it may be told."""
        if self.blocked:
            return self.blocked if sees("*") else gettext(UNAVAILABLE)
        if not self.pod:
            return ""
        if not sees(self.namespace):
            return gettext(UNAVAILABLE)
        return f"{self.namespace}/{self.pod} {self.profile}"


@dataclass(frozen=True, slots=True)
class Side:
    """One placement in three columns. ``difference`` is a code of :data:`DIFFERENCES`."""

    placement: Placement
    annotation: str
    node: str
    mirror: str
    difference: str

    @property
    def word(self) -> str:
        return str(DIFFERENCES[self.difference])


def sides_of(record: GpuRecord, sees: Sees) -> list[Side] | None:
    """Every placement that anyone names, lowest first; two queries, None where they fail."""
    uuid = record.capability.uuid
    found = sides_on({uuid: record}, sees)
    return None if found is None else list(found[uuid].values())


def sides_on(
    gpus: Mapping[str, GpuRecord | None], sees: Sees
) -> dict[str, dict[Placement, Side]] | None:
    """The same of several GPUs by UUID, also two queries; None is a GPU that the cluster lacks.

    What was just changed may differ for the second that the worker takes to follow.
    """
    mirrored: dict[str, dict[Placement, Told]] = {uuid: {} for uuid in gpus}
    rows = MigReservation.objects.filter(LIVE, ~Q(phase=Phase.HELD), gpu_uuid__in=mirrored)
    blocked = BlockedInterval.objects.filter(gpu__uuid__in=mirrored).select_related("gpu")
    try:
        for row in rows:
            mirrored[row.gpu_uuid][row.placement] = _of_row(row)
        for item in blocked:
            placement = Placement(item.start, item.size)
            mirrored[item.gpu.uuid].setdefault(placement, Told(blocked=item.reason or "?"))
    except DatabaseError as error:
        logger.warning("side by side: the mirror cannot be read: %s", error)
        return None
    return {uuid: _sides(record, mirrored[uuid], sees) for uuid, record in gpus.items()}


def _sides(
    record: GpuRecord | None, mirrored: dict[Placement, Told], sees: Sees
) -> dict[Placement, Side]:
    told = _of_cluster(record) if record else {}
    return {
        placement: _side(placement, told.get(placement), mirrored.get(placement), sees)
        for placement in sorted({*told, *mirrored})
    }


def _of_cluster(record: GpuRecord) -> dict[Placement, Told]:
    told = {
        claim.placement: Told(claim.pod.namespace, claim.pod.name, claim.profile, claim.mig_uuid)
        for claim in record.claims
    }
    for interval in record.blocked:
        told.setdefault(interval.placement, Told(blocked=interval.reason or "?"))
    return told


def _of_row(row: MigReservation) -> Told:
    return Told(row.namespace, row.pod, row.profile, row.mig_uuid)


def _side(placement: Placement, told: Told | None, mirrored: Told | None, sees: Sees) -> Side:
    cluster, mirror = told or Told(), mirrored or Told()
    identity = cluster.mig_uuid if sees(cluster.namespace) else gettext(UNAVAILABLE)
    return Side(
        placement,
        "" if cluster.blocked else cluster.words(sees),
        cluster.words(sees) if cluster.blocked else identity if cluster.mig_uuid else "",
        " ".join(filter(None, (mirror.words(sees), _instance(mirror, sees)))),
        difference(told, mirrored),
    )


def _instance(told: Told, sees: Sees) -> str:
    return told.mig_uuid if told.mig_uuid and sees(told.namespace) else ""


def difference(told: Told | None, mirrored: Told | None) -> str:
    """In what two sources differ, the gravest first; empty where they agree."""
    if mirrored is None:
        return "mirror lacks it"
    if told is None:
        return "only in mirror"
    if (told.namespace, told.pod) != (mirrored.namespace, mirrored.pod):
        return "pod"
    if told.profile != mirrored.profile:
        return "profile"
    return "" if told.mig_uuid == mirrored.mig_uuid else "instance"
