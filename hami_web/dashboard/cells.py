"""What one GPU looks like: cells of memory slices with a state each, ready to be drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from hami_web.core.occupancy import Occupancy
from hami_web.core.placement import Placement


class CellState(StrEnum):
    """State of the memory slices of one cell; the value is the class name in the page."""

    FREE = "free"
    HELD = "held"
    BOUND = "bound"
    REALIZED = "realized"
    TERMINATING = "terminating"
    BLOCKED = "blocked"
    CONFLICTED = "conflicted"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Cell:
    """One placement, or one run of free memory slices, and who has it.

    ``pod`` is ``namespace/name``, ``detail`` the MIG UUID or the reason why nobody may use it,
    ``memory_mib`` what the profile offers in MiB (0 where no profile is known).
    """

    placement: Placement
    state: CellState
    profile: str = ""
    pod: str = ""
    detail: str = ""
    memory_mib: int = 0


@dataclass(frozen=True, slots=True)
class Fit:
    """How many more instances of one profile fit on a GPU, if no other profile is taken."""

    profile: str
    count: int


@dataclass(frozen=True, slots=True)
class GpuRow:
    """One GPU. ``grid`` is its number of memory slices, ``memory_mib`` in MiB.

    ``cells`` cover the grid from left to right without overlap. ``notes`` are codes of what keeps
    the whole GPU from new work; :mod:`hami_web.dashboard.wording` has their words.
    """

    node: str
    uuid: str
    index: int
    model: str
    memory_mib: int
    grid: int
    cells: tuple[Cell, ...]
    fits: tuple[Fit, ...] = ()
    notes: tuple[str, ...] = ()

    def memory_slices(self, state: CellState) -> int:
        """Number of memory slices in one state."""
        return sum(cell.placement.size for cell in self.cells if cell.state is state)

    def has(self, pod: str) -> bool:
        """Whether ``namespace/name`` has memory slices of it."""
        return any(pod in cell.pod.split(", ") for cell in self.cells)

    @property
    def instances(self) -> int:
        """Instances that exist and belong to a Pod."""
        shown = (CellState.REALIZED, CellState.TERMINATING)
        return sum(cell.state in shown for cell in self.cells)


def cover_grid(cells: Iterable[Cell], grid: int) -> tuple[Cell, ...]:
    """Order the cells of one GPU, join those that overlap, and fill the gaps with free cells.

    Overlapping cells are a conflict between owners, so the joined cell names them all.
    """
    joined: list[Cell] = []
    for cell in sorted(cells, key=lambda each: (each.placement, each.pod)):
        if joined and joined[-1].placement.overlaps(cell.placement):
            joined[-1] = _joined(joined[-1], cell)
        else:
            joined.append(cell)
    taken = Occupancy.of(cell.placement for cell in joined)
    free = (Cell(run, CellState.FREE) for run in free_runs(taken, grid))
    return tuple(sorted([*joined, *free], key=lambda cell: cell.placement))


def free_runs(occupancy: Occupancy, grid: int) -> tuple[Placement, ...]:
    """Longest intervals of free memory slices, from left to right."""
    runs: list[Placement] = []
    start: int | None = None
    for position in range(grid + 1):
        free = position < grid and occupancy.admits(Placement(position, 1))
        if free and start is None:
            start = position
        elif not free and start is not None:
            runs.append(Placement(start, position - start))
            start = None
    return tuple(runs)


def _joined(left: Cell, right: Cell) -> Cell:
    end = max(left.placement.end, right.placement.end)
    return Cell(
        placement=Placement(left.placement.start, end - left.placement.start),
        state=CellState.CONFLICTED,
        profile=_both(left.profile, right.profile),
        pod=_both(left.pod, right.pod),
        detail=_both(left.detail, right.detail),
    )


def _both(left: str, right: str) -> str:
    return ", ".join(dict.fromkeys(part for part in (left, right) if part))
