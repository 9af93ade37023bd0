"""The mirror's rows as the scheduler's records of the cluster.

The one way from rows to what decides: a plan made here follows the rules of ``/filter``, because
they are the same functions over the same records. What the mirror does not have is not counted:
choices that are held but not bound, and quotas.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeVar

from hami_web.core.blocked import BlockedInterval
from hami_web.core.capability import GpuCapability, ProfileCapability
from hami_web.core.errors import InvalidCapability, InvalidField
from hami_web.core.placement import Placement
from hami_web.core.reasons import Reason
from hami_web.core.tables import ProfileTable
from hami_web.inventory import models as inventory
from hami_web.inventory.models import LIVE
from hami_web.inventory.selectors import to_capability, to_profile
from hami_web.reservations.claims import phase_of
from hami_web.reservations.models import LIVE as RESERVED
from hami_web.reservations.models import MigReservation
from hami_web.reservations.models import Phase as Stored
from hami_web.reservations.selectors import live_by_gpu
from hami_web.scheduling.records import (
    Claim,
    GpuRecord,
    NodeRecord,
    Phase,
    PodIdentity,
    occupy,
)

Row = TypeVar("Row")
Profiles = tuple[ProfileCapability, ...]


def read_records() -> dict[str, NodeRecord]:
    """Every live node by name, with its GPUs and what is on them; five queries."""
    profiles = _profiles()
    reserved = live_by_gpu()
    blocked = _grouped(inventory.BlockedInterval.objects.all(), "gpu_id")
    gpus = _grouped(inventory.Gpu.objects.filter(LIVE).order_by("index", "uuid"), "node_id")
    records: dict[str, NodeRecord] = {}
    for node in inventory.Node.objects.filter(LIVE):
        usable: list[GpuRecord] = []
        refused: list[tuple[str, InvalidField]] = []
        for gpu in gpus.get(node.pk, ()):
            if gpu.closed == Reason.CAPABILITY_INVALID:
                refused.append((gpu.uuid, _refusal(node.name, gpu.uuid)))
                continue
            capability = to_capability(gpu, profiles.get(gpu.profile_set_id, ()))
            claims = [_claim(row) for row in reserved.get(gpu.uuid, ())]
            usable.append(_gpu_record(gpu, capability, claims, blocked.get(gpu.pk, ())))
        records[node.name] = _node_record(node, usable, refused)
    return records


def read_protected() -> frozenset[str]:
    """UIDs of live Pods that say that they must not be evicted; one query."""
    rows = MigReservation.objects.filter(RESERVED, do_not_evict=True)
    return frozenset(rows.order_by().values_list("pod_uid", flat=True).distinct())


def _profiles() -> dict[int, Profiles]:
    """Profiles by their set, one tuple for all GPUs that share it."""
    rows = _grouped(inventory.Profile.objects.all(), "profile_set_id")
    return {key: tuple(map(to_profile, found)) for key, found in rows.items()}


def _grouped(rows: Iterable[Row], key: str) -> Mapping[int, list[Row]]:
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        found[getattr(row, key)].append(row)
    return found


def _claim(row: MigReservation) -> Claim:
    pod = PodIdentity(row.namespace, row.pod, row.pod_uid, row.priority)
    phase = Phase.HELD if row.phase == Stored.HELD else Phase(phase_of(row).value)
    return Claim.of(pod, phase, row.to_domain())


def _gpu_record(
    row: inventory.Gpu,
    capability: GpuCapability,
    claims: list[Claim],
    blocked: Iterable[inventory.BlockedInterval],
) -> GpuRecord:
    intervals = tuple(
        BlockedInterval(row.uuid, Placement(item.start, item.size), item.reason) for item in blocked
    )
    table = _table(capability.profiles, capability.memory_mib)
    return occupy(capability, table, claims, intervals, cordoned=row.cordoned)


def _node_record(
    row: inventory.Node, gpus: list[GpuRecord], refused: list[tuple[str, InvalidField]]
) -> NodeRecord:
    closed = _reason(row.closed)
    return NodeRecord(
        row.name,
        0,
        tuple(gpus),
        tuple(refused),
        closed,
        tuple(row.doubts),
        () if closed else tuple(gpu for gpu in gpus if gpu.refusal is None),
        row.unschedulable,
    )


def _reason(text: str) -> Reason | None:
    """A word of ours; one that is not known closes the node all the same."""
    if not text:
        return None
    try:
        return Reason(text)
    except ValueError:
        return Reason.NODE_DOUBT


def _refusal(node: str, uuid: str) -> InvalidCapability:
    return InvalidCapability(f"node {node}: GPU {uuid}", uuid, "a capability that can be read")


@lru_cache(maxsize=128)
def _table(profiles: Profiles, memory_mib: int) -> ProfileTable:
    """Tables outlive a question: what they found out about a model stays true."""
    return ProfileTable(
        GpuCapability(
            uuid="",
            index=0,
            count=0,
            memory_mib=memory_mib,
            core_percent=0,
            model="",
            numa=0,
            mode="",
            profiles=profiles,
            healthy=True,
        )
    )
