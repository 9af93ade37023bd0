"""From a snapshot of the cluster to the map that is shown: a pure function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from hami_web.core.capability import ProfileCapability
from hami_web.core.occupancy import Occupancy, headroom
from hami_web.core.reasons import Reason
from hami_web.dashboard.cells import Cell, CellState, Fit, GpuRow, cover_grid
from hami_web.dashboard.cluster_map import ClusterMap, NodeBlock, WaitingPod
from hami_web.scheduling.records import Claim, ClusterSnapshot, GpuRecord, NodeRecord, Phase

_STATES: Final = {
    Phase.HELD: CellState.HELD,
    Phase.RESERVED: CellState.BOUND,
    Phase.REALIZED: CellState.REALIZED,
    Phase.TERMINATING: CellState.TERMINATING,
    Phase.CONFLICTED: CellState.CONFLICTED,
}
NODE_NOTES: Final = {
    Reason.NODE_STALE: "stale",
    Reason.NODE_UNREGISTERED: "unregistered",
    Reason.NODE_DOUBT: "doubt",
    Reason.NODE_OTHER_OWNER: "other-owner",
}
GPU_NOTES: Final = {
    Reason.NOT_HEALTHY: "unhealthy",
    Reason.CORDONED: "cordoned",
    Reason.CONFLICT: "conflict",
}


def draw_map(
    snapshot: ClusterSnapshot,
    waiting: Iterable[WaitingPod] = (),
    pools: Mapping[str, str] = MappingProxyType({}),
    *,
    version: int,
) -> ClusterMap:
    """All nodes that publish GPUs or ought to, by name. Nodes without any GPU are left out.

    ``pools`` are the pools of nodes by the node's name.
    """
    records = {name: record for name, record in snapshot.nodes.items() if _concerns(record)}
    nodes = (_node(records[name], pools.get(name, "")) for name in sorted(records))
    return ClusterMap(version, tuple(nodes), tuple(waiting), records)


def _concerns(record: NodeRecord) -> bool:
    return bool(record.gpus or record.refused or record.doubts)


def _node(record: NodeRecord, pool: str) -> NodeBlock:
    notes = [NODE_NOTES.get(record.closed, str(record.closed))] if record.closed else []
    if record.unschedulable:
        notes.append("unschedulable")
    # What cannot be read is told word for word: it names the Pod or the field.
    notes.extend(record.doubts)
    notes.extend(str(error) for _, error in record.refused)
    gpus = sorted(record.gpus, key=lambda gpu: (gpu.capability.index, gpu.capability.uuid))
    rows = tuple(_row(record.name, gpu) for gpu in gpus)
    return NodeBlock(record.name, rows, tuple(notes), pool)


def _row(node: str, record: GpuRecord) -> GpuRow:
    gpu = record.capability
    cells = [*(_claimed(claim, gpu.by_name) for claim in record.claims), *_blocked(record)]
    refusal = record.refusal
    return GpuRow(
        node=node,
        uuid=gpu.uuid,
        index=gpu.index,
        model=gpu.model,
        memory_mib=gpu.memory_mib,
        grid=gpu.grid,
        cells=cover_grid(cells, gpu.grid),
        fits=() if refusal else _fits(record),
        notes=(GPU_NOTES.get(refusal, str(refusal)),) if refusal else (),
    )


def _claimed(claim: Claim, profiles: Mapping[str, ProfileCapability]) -> Cell:
    profile = profiles.get(claim.profile)
    return Cell(
        placement=claim.placement,
        state=_STATES[claim.phase],
        profile=claim.profile,
        pod=claim.pod.full_name,
        detail=claim.identity.mig_uuid if claim.identity else "",
        memory_mib=profile.memory_mib if profile else 0,
    )


def _blocked(record: GpuRecord) -> list[Cell]:
    """Blocked memory slices that no claim covers: an instance whose destroy is refused may do so
    under the claim of its own Pod, and the claim says more."""
    taken = Occupancy.of(claim.placement for claim in record.claims)
    return [
        Cell(interval.placement, CellState.BLOCKED, detail=interval.reason)
        for interval in record.blocked
        if taken.admits(interval.placement)
    ]


def _fits(record: GpuRecord) -> tuple[Fit, ...]:
    taken = Occupancy.of(
        [
            *(claim.placement for claim in record.claims),
            *(interval.placement for interval in record.blocked),
        ]
    )
    return tuple(
        Fit(profile.name, headroom(profile, taken)) for profile in record.capability.plain_profiles
    )
