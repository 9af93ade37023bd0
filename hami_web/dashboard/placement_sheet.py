"""Placements as rows of a file; apart from the other sheets, since these need no database."""

from __future__ import annotations

from collections.abc import Iterable

from hami_web.dashboard.cells import GpuRow
from hami_web.dashboard.downloads import Sheet

PLACEMENT = (
    *("node", "gpu_index", "gpu_uuid", "model", "start", "size", "state", "profile"),
    *("memory_mib", "pod", "detail"),
)


def placements_sheet(name: str, rows: Iterable[GpuRow]) -> Sheet:
    """Every placement and every free run of memory slices."""
    return Sheet(
        name,
        PLACEMENT,
        [
            (
                *(row.node, row.index, row.uuid, row.model),
                *(cell.placement.start, cell.placement.size, str(cell.state), cell.profile),
                *(cell.memory_mib or None, cell.pod, cell.detail),
            )
            for row in rows
            for cell in row.cells
        ],
    )
