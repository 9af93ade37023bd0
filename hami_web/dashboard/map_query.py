"""What of the map a page shows, and how: all of it stands in the address."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlencode

from hami_web.core.errors import InvalidField
from hami_web.dashboard.cells import CellState, GpuRow
from hami_web.dashboard.cluster_map import ClusterMap, NodeBlock
from hami_web.dashboard.room import gpu_heat

VIEWS: Final = ("map", "table")
GROUPS: Final = ("node", "model", "pool")
SORTS: Final = ("name", "free", "fragmentation")
AUTO: Final = "auto"
"""Dense where there are many GPUs."""
DENSITIES: Final = (AUTO, "comfortable", "compact", "dense")
STATES: Final = tuple(str(state) for state in CellState)
TEXT_MAX: Final = 200
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "view": VIEWS,
    "group": GROUPS,
    "sort": SORTS,
    "density": DENSITIES,
    "state": ("", *STATES),
}


class InvalidQuery(InvalidField):
    """A parameter of the address that means nothing."""


@dataclass(frozen=True, slots=True)
class MapQuery:
    """Parameters of the map. Empty ones leave nothing out.

    ``q`` is looked for in names of nodes, models, Pods and profiles and in UUIDs, whatever the
    case; ``namespace`` and ``state`` keep the GPUs where anything is of that namespace or state.
    ``columns`` are those of the table, with commas.
    """

    view: str = VIEWS[0]
    group: str = GROUPS[0]
    sort: str = SORTS[0]
    density: str = DENSITIES[0]
    q: str = ""
    model: str = ""
    namespace: str = ""
    state: str = ""
    columns: str = ""

    def parameters(self, **changes: str) -> str:
        """The query string of this query with some parameters changed; defaults are left out."""
        wanted = replace(self, **changes)
        default = MapQuery()
        pairs = {
            name: getattr(wanted, name)
            for name in self.__slots__
            if name in changes or getattr(wanted, name) != getattr(default, name)
        }
        return f"?{urlencode(pairs)}"

    @property
    def as_map(self) -> str:
        return self.parameters(view="map")

    @property
    def as_table(self) -> str:
        return self.parameters(view="table")

    @property
    def filters(self) -> bool:
        """Anything may be left out."""
        return bool(self.q or self.model or self.namespace or self.state)

    @property
    def rows_stay(self) -> bool:
        """A change inside one GPU changes nothing but its row."""
        return self == replace(MapQuery(), density=self.density, columns=self.columns)


def parse_query(parameters: Mapping[str, str]) -> MapQuery:
    """The query of an address. Raises InvalidQuery; unknown parameters are refused too."""
    known = MapQuery.__slots__
    for name, text in parameters.items():
        if name not in known:
            raise InvalidQuery(name, text, f"one of {', '.join(known)}")
        if name in _CHOICES and text not in _CHOICES[name]:
            raise InvalidQuery(name, text, ", ".join(filter(None, _CHOICES[name])))
        if len(text) > TEXT_MAX:
            raise InvalidQuery(name, f"{text[:40]}…", f"at most {TEXT_MAX} characters")
    return MapQuery(**{name: text.strip() for name, text in parameters.items()})


def select(shown: ClusterMap, query: MapQuery) -> list[NodeBlock]:
    """The nodes, or the models or pools by ``group``, with the rows that the query leaves."""
    blocks = list(shown.nodes)
    if query.filters:
        matches = _condition(query)
        left = (replace(block, rows=tuple(filter(matches, block.rows))) for block in blocks)
        blocks = [block for block in left if block.rows]
    if query.group == "model":
        blocks = _joined((row.model, row) for block in blocks for row in block.rows)
    elif query.group == "pool":
        blocks = _joined((block.pool, row) for block in blocks for row in block.rows)
    return _sorted(shown, blocks, query.sort)


def _condition(query: MapQuery) -> Callable[[GpuRow], bool]:
    wanted = query.q.casefold()

    def matches(row: GpuRow) -> bool:
        if query.model and row.model != query.model:
            return False
        if query.state and not any(cell.state == query.state for cell in row.cells):
            return False
        if query.namespace and query.namespace not in _namespaces(row):
            return False
        return not wanted or any(wanted in text.casefold() for text in _texts(row))

    return matches


def _namespaces(row: GpuRow) -> set[str]:
    pods = (pod for cell in row.cells for pod in cell.pod.split(", "))
    return {pod.partition("/")[0] for pod in pods if pod}


def _texts(row: GpuRow) -> Iterable[str]:
    yield from (row.node, row.uuid, row.model)
    for cell in row.cells:
        yield from (cell.pod, cell.profile, cell.detail)


def _joined(named: Iterable[tuple[str, GpuRow]]) -> list[NodeBlock]:
    rows: dict[str, list[GpuRow]] = {}
    for name, row in named:
        rows.setdefault(name, []).append(row)
    return [NodeBlock(name, tuple(found)) for name, found in rows.items()]


def _sorted(shown: ClusterMap, blocks: list[NodeBlock], sort: str) -> list[NodeBlock]:
    if sort == "name":
        # What has no name comes last.
        return sorted(blocks, key=lambda block: (not block.name, block.name))
    measure = _free if sort == "free" else _lost(shown)
    ordered = [
        replace(block, rows=tuple(sorted(block.rows, key=measure, reverse=True)))
        for block in blocks
    ]
    return sorted(ordered, key=lambda block: -max(map(measure, block.rows), default=0.0))


def _free(row: GpuRow) -> float:
    return float(row.memory_slices(CellState.FREE))


def _lost(shown: ClusterMap) -> Callable[[GpuRow], float]:
    def measure(row: GpuRow) -> float:
        record = shown.gpu_record(row)
        return (gpu_heat(record).value or 0.0) if record else 0.0

    return measure
