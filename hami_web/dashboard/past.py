"""The map of a moment that is over, from the mirror's intervals."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Final

from hami_web.core.placement import Placement
from hami_web.core.reasons import Reason
from hami_web.dashboard.cells import Cell, CellState, GpuRow, cover_grid
from hami_web.dashboard.cluster_map import ClusterMap, NodeBlock
from hami_web.dashboard.drawing import GPU_NOTES, NODE_NOTES
from hami_web.inventory.models import GpuState, NodeState
from hami_web.inventory.selectors import gpus_at, nodes_at
from hami_web.reservations.models import MigReservation, Phase
from hami_web.reservations.selectors import as_of

_STATES: Final = {
    Phase.HELD.value: CellState.HELD,
    Phase.RESERVED.value: CellState.BOUND,
    Phase.REALIZED.value: CellState.REALIZED,
    Phase.TERMINATING.value: CellState.TERMINATING,
}


def past_map(moment: datetime) -> ClusterMap:
    """Nodes and GPUs as they were, with what was on them; four queries.

    What still fitted is not worked out, and Pods that waited then are not on it.
    """
    taken: defaultdict[str, list[Cell]] = defaultdict(list)
    for row in as_of(MigReservation.objects.order_by("start", "id"), moment):
        taken[row.gpu_uuid].append(_cell(row, moment))
    rows: defaultdict[str, list[GpuRow]] = defaultdict(list)
    for gpu in gpus_at(moment).order_by("index", "gpu__uuid"):
        rows[gpu.node.name].append(_row(gpu, taken.get(gpu.gpu.uuid, [])))
    nodes = tuple(
        NodeBlock(node.node.name, tuple(rows[node.node.name]), _node_notes(node))
        for node in nodes_at(moment).select_related("node")
    )
    return ClusterMap(1, nodes)


def _cell(row: MigReservation, moment: datetime) -> Cell:
    then = str(getattr(row, "phase_then", row.phase))
    was_realized = row.realized_at is not None and row.realized_at <= moment
    return Cell(
        placement=row.placement,
        state=_STATES.get(then, CellState.BOUND),
        profile=row.profile,
        pod=f"{row.namespace}/{row.pod}",
        detail=row.mig_uuid if was_realized else "",
        memory_mib=row.memory_mib or 0,
    )


def _row(gpu: GpuState, cells: list[Cell]) -> GpuRow:
    blocked = [
        Cell(Placement(item.start, item.size), CellState.BLOCKED, detail=item.reason)
        for item in gpu.blocked
        if not any(cell.placement.overlaps(Placement(item.start, item.size)) for cell in cells)
    ]
    return GpuRow(
        node=gpu.node.name,
        uuid=gpu.gpu.uuid,
        index=gpu.index,
        model=gpu.gpu.model,
        memory_mib=gpu.gpu.memory_mib,
        grid=gpu.memory_slices,
        cells=cover_grid([*cells, *blocked], gpu.memory_slices),
        notes=(_note(GPU_NOTES, gpu.closed),) if gpu.closed else (),
    )


def _node_notes(node: NodeState) -> tuple[str, ...]:
    notes = [_note(NODE_NOTES, node.closed)] if node.closed else []
    if node.unschedulable:
        notes.append("unschedulable")
    return (*notes, *map(str, node.doubts))


def _note(words: dict[Reason, str], code: str) -> str:
    return next((word for reason, word in words.items() if reason.value == code), code)
