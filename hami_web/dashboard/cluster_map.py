"""The whole cluster as the dashboard shows it: nodes, their GPUs, and the Pods that wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hami_web.dashboard.cells import CellState, GpuRow
from hami_web.scheduling.records import GpuRecord, NodeRecord


@dataclass(frozen=True, slots=True)
class NodeBlock:
    """A node with its GPUs by index; ``notes`` are codes of what keeps it from new work."""

    name: str
    rows: tuple[GpuRow, ...]
    notes: tuple[str, ...] = ()


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
    drawn: dict[tuple[str, str], str] = field(default_factory=dict, compare=False, repr=False)
    """HTML of its parts by language and name, drawn once; it goes with the map."""

    @cached_property
    def rows(self) -> Mapping[str, GpuRow]:
        """Every GPU by UUID."""
        return {row.uuid: row for node in self.nodes for row in node.rows}

    @cached_property
    def blocks(self) -> Mapping[str, NodeBlock]:
        """Every node by name."""
        return {node.name: node for node in self.nodes}

    def gpu_record(self, row: GpuRow) -> GpuRecord | None:
        """What a row was drawn from."""
        node = self.records.get(row.node)
        return node.gpu(row.uuid) if node else None

    @property
    def layout(self) -> tuple[object, ...]:
        """All that is not inside one GPU's row: a change here redraws the page."""
        return tuple(
            (node.name, node.notes, tuple(row.uuid for row in node.rows)) for node in self.nodes
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
        return sum(row.memory_slices(state) for row in self.rows.values())
