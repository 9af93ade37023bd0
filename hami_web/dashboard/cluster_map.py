"""The whole cluster as the dashboard shows it: nodes, their GPUs, and the Pods that wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from hami_web.dashboard.cells import CellState, GpuRow
from hami_web.scheduling.records import GpuRecord, NodeRecord

SHORT_NAME: Final = 12
"""Characters of a UUID that tell the GPUs of one cluster apart: ``GPU-`` and eight digits."""


@dataclass(frozen=True, slots=True)
class NodeBlock:
    """A node with its GPUs by index; ``notes`` are codes of what keeps it from new work.

    ``pool`` is what its label calls the pool of nodes that it belongs to, empty for none.
    """

    name: str
    rows: tuple[GpuRow, ...]
    notes: tuple[str, ...] = ()
    pool: str = ""


@dataclass(frozen=True, slots=True)
class WaitingPod:
    """A Pod that asks for MIG devices and has no node; ``reason`` in the scheduler's words."""

    pod: str
    reason: str


@dataclass(frozen=True)
class ClusterMap:
    """One moment of the cluster. ``version`` grows with every change that can be seen here.

    ``records`` are what the nodes were drawn from, by name: capability, and the state that answers
    what still fits.
    """

    version: int
    nodes: tuple[NodeBlock, ...]
    waiting: tuple[WaitingPod, ...] = ()
    records: Mapping[str, NodeRecord] = field(default_factory=dict, compare=False, repr=False)
    drawn: dict[tuple[Hashable, str], str] = field(default_factory=dict, compare=False, repr=False)
    """HTML of its parts by style and name, drawn once; it goes with the map."""

    @cached_property
    def rows(self) -> Mapping[str, GpuRow]:
        """Every GPU by UUID."""
        return {row.uuid: row for node in self.nodes for row in node.rows}

    def find_gpu(self, name: str) -> GpuRow | None:
        """A GPU by its UUID or by its short name."""
        return self.rows.get(name) or self._by_short_name.get(name)

    def short_name(self, uuid: str) -> str:
        """The beginning of a UUID where no other GPU has the same, else the whole UUID."""
        short = uuid[:SHORT_NAME]
        return uuid if self._by_short_name.get(short) is None else short

    @cached_property
    def _by_short_name(self) -> Mapping[str, GpuRow | None]:
        """None where several GPUs begin alike."""
        found: dict[str, GpuRow | None] = {}
        for uuid, row in self.rows.items():
            short = uuid[:SHORT_NAME]
            found[short] = None if short in found else row
        return found

    @cached_property
    def blocks(self) -> Mapping[str, NodeBlock]:
        """Every node by name."""
        return {node.name: node for node in self.nodes}

    def gpu_record(self, row: GpuRow) -> GpuRecord | None:
        """What a row was drawn from."""
        node = self.records.get(row.node)
        return node.gpu(row.uuid) if node else None

    @cached_property
    def kin(self) -> frozenset[str]:
        """Pods that have more than one cell."""
        pods = Counter(cell.pod for row in self.rows.values() for cell in row.cells if cell.pod)
        return frozenset(pod for pod, count in pods.items() if count > 1)

    @property
    def layout(self) -> tuple[object, ...]:
        """All that is not inside one GPU's row: a change here redraws the page."""
        return tuple(
            (node.name, node.pool, node.notes, tuple(row.uuid for row in node.rows))
            for node in self.nodes
        )

    @property
    def gpu_count(self) -> int:
        return len(self.rows)

    @property
    def instance_count(self) -> int:
        """Instances that exist and belong to a Pod."""
        return sum(row.instances for row in self.rows.values())

    @property
    def memory_slices(self) -> int:
        """Memory slices of all GPUs."""
        return sum(row.grid for row in self.rows.values())

    def memory_slices_in(self, state: CellState) -> int:
        """Memory slices in one state, over all GPUs."""
        return self._memory_slices[state]

    @cached_property
    def _memory_slices(self) -> Counter[CellState]:
        counted: Counter[CellState] = Counter()
        for row in self.rows.values():
            for cell in row.cells:
                counted[cell.state] += cell.placement.size
        return counted

    @cached_property
    def models(self) -> frozenset[str]:
        """Models of GPUs."""
        return frozenset(row.model for row in self.rows.values())

    @cached_property
    def namespaces(self) -> frozenset[str]:
        """Namespaces whose Pods have anything here."""
        cells = (cell for row in self.rows.values() for cell in row.cells if cell.pod)
        return frozenset(pod.partition("/")[0] for cell in cells for pod in cell.pod.split(", "))
