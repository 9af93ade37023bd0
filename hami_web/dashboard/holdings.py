"""What each namespace has and waits for on one map of the cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hami_web.dashboard.cells import Cell, CellState, GpuRow
from hami_web.dashboard.cluster_map import ClusterMap, WaitingPod


@dataclass(frozen=True, slots=True)
class Holding:
    """One reservation that a Pod of the namespace has: a cell, and the GPU it lies on.

    Where owners are in conflict the cell is one of each of them.
    """

    cell: Cell
    row: GpuRow


@dataclass(frozen=True, slots=True)
class Holdings:
    """All that one namespace has and waits for."""

    namespace: str
    reservations: tuple[Holding, ...] = ()
    waiting: tuple[WaitingPod, ...] = ()

    @property
    def memory_slices(self) -> int:
        """Memory slices that are taken, over all GPUs."""
        return sum(item.cell.placement.size for item in self.reservations)

    @property
    def memory_mib(self) -> int:
        """What the profiles offer, in MiB; conflicts have no known profile and count nothing."""
        return sum(item.cell.memory_mib for item in self.reservations)

    @property
    def realized(self) -> int:
        """Reservations whose instance exists and is not about to go."""
        return sum(item.cell.state is CellState.REALIZED for item in self.reservations)

    @property
    def rows(self) -> tuple[GpuRow, ...]:
        """The GPUs, each once, in the order of the map."""
        return tuple({item.row.uuid: item.row for item in self.reservations}.values())

    def by_profile(self) -> Mapping[str, tuple[Holding, ...]]:
        """The reservations of each profile; what has none stands under the empty name."""
        found: defaultdict[str, list[Holding]] = defaultdict(list)
        for item in self.reservations:
            found[item.cell.profile].append(item)
        return {name: tuple(found[name]) for name in sorted(found)}


def all_holdings(shown: ClusterMap) -> dict[str, Holdings]:
    """Those of every namespace that the map names, by name."""
    found: defaultdict[str, list[Holding]] = defaultdict(list)
    for namespace, item in _each(shown):
        found[namespace].append(item)
    waiting: defaultdict[str, list[WaitingPod]] = defaultdict(list)
    for pod in shown.waiting:
        waiting[pod.pod.partition("/")[0]].append(pod)
    return {
        name: Holdings(name, tuple(found[name]), tuple(waiting[name]))
        for name in sorted({*found, *waiting})
    }


def _each(shown: ClusterMap) -> Iterator[tuple[str, Holding]]:
    for row in shown.rows.values():
        for cell in row.cells:
            for namespace in {pod.partition("/")[0] for pod in cell.pod.split(", ") if pod}:
                yield namespace, Holding(cell, row)
