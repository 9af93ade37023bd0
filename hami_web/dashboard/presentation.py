"""Values for the templates: words, units and pictures, no decisions left to make."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from django.urls import reverse
from django.utils.safestring import SafeString

from hami_web.dashboard import slice_map
from hami_web.dashboard.brief_rows import ABOVE, BriefRows
from hami_web.dashboard.cells import Cell, CellState, GpuRow
from hami_web.dashboard.cluster_map import SHORT_NAME, ClusterMap, NodeBlock
from hami_web.dashboard.map_query import AUTO, MapQuery, select
from hami_web.dashboard.wording import (
    STATE_MEANINGS,
    describe_fits,
    describe_rows,
    group_name,
    mebibytes,
    memory_slices,
    note_words,
    state_word,
)

_RARE = (CellState.HELD, CellState.UNAVAILABLE)


@dataclass(frozen=True, slots=True)
class PodLink:
    """A Pod's name and the address of its page."""

    name: str
    address: str


def pod_link(full_name: str, at: str = "") -> PodLink:
    """Link to the page of ``namespace/name``; ``at`` is the query string that keeps a moment."""
    namespace, _, name = full_name.partition("/")
    address = reverse("dashboard:pod-page", args=[namespace, name])
    return PodLink(full_name, f"{address}{at}")


@dataclass(frozen=True, slots=True)
class TableLine:
    """One cell as a line of the table."""

    cell: Cell
    row: GpuRow
    at: str = ""

    @property
    def anchor(self) -> str:
        return slice_map.anchor(self.cell, self.row)

    @property
    def slice_anchor(self) -> str:
        """Identity of the cell on the page of its GPU."""
        return slice_map.slice_anchor(self.cell, self.row)

    @property
    def word(self) -> str:
        return state_word(self.cell.state)

    @property
    def pods(self) -> list[PodLink]:
        """The Pods of the cell: several where owners are in conflict."""
        return [pod_link(name, self.at) for name in self.cell.pod.split(", ") if name]

    @property
    def memory(self) -> str:
        """The profile's memory, or for cells without profile the number of memory slices."""
        if self.cell.memory_mib:
            return mebibytes(self.cell.memory_mib)
        return memory_slices(self.cell.placement.size)


@dataclass(frozen=True)
class GpuView:
    """One GPU for the templates."""

    row: GpuRow
    at: str = ""
    """Query string that keeps the moment that is shown; empty for now."""
    alone: bool = False
    """The page is this GPU's, and has its table."""

    @property
    def svg(self) -> SafeString:
        if self.alone:
            return slice_map.render_row(self.row, self.at, anchored=True)
        if self.at:
            return slice_map.render_row(self.row, f"{self.address}{self.at}")
        return slice_map.render_row(self.row)

    @property
    def address(self) -> str:
        return reverse("dashboard:gpu-page", args=[self.row.uuid])

    @property
    def short_uuid(self) -> str:
        """Enough to tell GPUs apart; the whole UUID is in the tip."""
        uuid = self.row.uuid
        return uuid if len(uuid) <= SHORT_NAME else f"{uuid[:SHORT_NAME]}…"

    @property
    def memory(self) -> str:
        return f"{mebibytes(self.row.memory_mib)} · {memory_slices(self.row.grid)}"

    @property
    def fits(self) -> str:
        return describe_fits(self.row.fits)

    @property
    def notes(self) -> list[str]:
        return [note_words(code) for code in self.row.notes]

    @property
    def lines(self) -> list[TableLine]:
        return [TableLine(cell, self.row, self.at) for cell in self.row.cells]


@dataclass(frozen=True)
class NodeView:
    """One node for the templates, or one group of GPUs by ``group``."""

    block: NodeBlock
    group: str = "node"
    at: str = ""

    @property
    def name(self) -> str:
        return self.block.name

    @property
    def is_node(self) -> bool:
        """It is no group of GPUs of several nodes."""
        return self.group == "node"

    @property
    def title(self) -> str:
        return group_name(self.block.name)

    @property
    def notes(self) -> tuple[str, ...]:
        return self.block.notes

    @property
    def note_words(self) -> list[str]:
        return [note_words(code) for code in self.block.notes]

    @property
    def description(self) -> str:
        """How many GPUs of each model there are, or of each node where models are groups."""
        return describe_rows(self.block.rows, by_node=self.group == "model")

    @cached_property
    def gpus(self) -> list[GpuView]:
        return [GpuView(row, self.at) for row in self.block.rows]


@dataclass(frozen=True, slots=True)
class StateTotal:
    """Memory slices of the cluster in one state."""

    state: CellState
    count: int

    @property
    def word(self) -> str:
        return state_word(self.state)


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """One state of the legend."""

    state: CellState

    @property
    def word(self) -> str:
        return state_word(self.state)

    @property
    def meaning(self) -> str:
        return str(STATE_MEANINGS[self.state])

    @property
    def patterned(self) -> bool:
        return slice_map.is_patterned(self.state)


@dataclass(frozen=True)
class MapView:
    """A map for the templates; same names as :class:`ClusterMap` where the value is the same."""

    source: ClusterMap
    query: MapQuery = field(default_factory=MapQuery)
    at: str = ""

    @property
    def version(self) -> int:
        return self.source.version

    @property
    def gpu_count(self) -> int:
        return self.source.gpu_count

    @property
    def instance_count(self) -> int:
        return self.source.instance_count

    @property
    def memory_slices(self) -> int:
        return self.source.memory_slices

    @property
    def waiting(self) -> list[dict[str, str]]:
        return [
            {"pod": each.pod, "address": pod_link(each.pod).address, "reason": each.reason}
            for each in self.source.waiting
        ]

    @cached_property
    def nodes(self) -> list[NodeView]:
        """Those that the query leaves, in its order."""
        return [NodeView(block, self.query.group, self.at) for block in self._blocks]

    @property
    def brief_nodes(self) -> SafeString:
        """The same nodes with brief rows."""
        return BriefRows(self.source).render(self._blocks, group=self.query.group)

    @cached_property
    def _blocks(self) -> list[NodeBlock]:
        return select(self.source, self.query)

    @property
    def node_count(self) -> int:
        return len(self.source.nodes)

    @property
    def shown_gpus(self) -> int:
        """GPUs that the query leaves."""
        return sum(len(block.rows) for block in self._blocks)

    @property
    def is_large(self) -> bool:
        """So many GPUs that it matters what each of them costs."""
        return self.shown_gpus > ABOVE

    @property
    def density(self) -> str:
        """As asked for, or by the number of GPUs that the query leaves."""
        if self.query.density != AUTO:
            return self.query.density
        return "dense" if self.is_large else "comfortable"

    @property
    def is_brief(self) -> bool:
        """Rows without what a dense map hides; the past has no whole rows to put in their place."""
        return self.is_large and self.density == "dense" and not self.at

    @property
    def totals(self) -> list[StateTotal]:
        """States that occur, and always the free ones."""
        totals = (StateTotal(state, self.source.memory_slices_in(state)) for state in CellState)
        return [total for total in totals if total.count or total.state is CellState.FREE]


def legend(shown: MapView | None) -> list[LegendEntry]:
    """The states in the order of a reservation's life; some only where they are to be seen."""
    return [
        LegendEntry(state)
        for state in CellState
        if state not in _RARE or (shown and shown.source.memory_slices_in(state))
    ]
