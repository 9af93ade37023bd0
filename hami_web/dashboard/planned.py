"""Rows of GPUs as they would be after a plan, drawn like those of the map."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from hami_web.core.placement import Placement
from hami_web.dashboard.cells import Cell, CellState, GpuRow, cover_grid
from hami_web.scheduling.records import Claim


def with_planned(row: GpuRow, planned: Iterable[Cell]) -> GpuRow:
    """The row with more cells; what still fits is left out, since it would be another."""
    taken = [cell for cell in row.cells if cell.state is not CellState.FREE]
    return replace(row, cells=cover_grid([*taken, *planned], row.grid), fits=())


def without(row: GpuRow, leaving: Iterable[Placement]) -> GpuRow:
    """The row without the cells at these placements."""
    gone = frozenset(leaving)
    left = [
        cell
        for cell in row.cells
        if cell.state is not CellState.FREE and cell.placement not in gone
    ]
    return replace(row, cells=cover_grid(left, row.grid), fits=())


def planned_cell(placement: Placement, profile: str, name: str) -> Cell:
    """A place that something would have, drawn as one that is chosen and not bound."""
    return Cell(placement, CellState.HELD, profile, name)


def grouped(items: Iterable[tuple[str, Cell]]) -> Mapping[str, list[Cell]]:
    """Cells by UUID of their GPU, in the order in which the GPUs come."""
    found: dict[str, list[Cell]] = {}
    for uuid, cell in items:
        found.setdefault(uuid, []).append(cell)
    return found


def pod_name(claim: Claim, *, seen: bool, otherwise: str) -> str:
    """``namespace/name`` of a claim's Pod, where it may be named."""
    return claim.pod.full_name if seen else otherwise
