"""The map as one caller may see it; every page, fragment, stream and total is made from that."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from django.http import HttpRequest

from hami_web.access.expiring import ExpiringAnswers
from hami_web.access.identity import visibility_of
from hami_web.access.visibility import UNAVAILABLE, Visibility
from hami_web.core.reasons import Reason
from hami_web.dashboard.cells import Cell, CellState, GpuRow
from hami_web.dashboard.cluster_map import ClusterMap, NodeBlock
from hami_web.dashboard.installed import installed_map
from hami_web.dashboard.wording import NOTE_WORDS

KEPT_S: Final = 600.0
_CODES: Final = {*NOTE_WORDS, *map(str, Reason)}
# By the very map, which is kept beside what was made of it: versions of past moments are all alike.
_kept: ExpiringAnswers[tuple[int, frozenset[str]], tuple[ClusterMap, ClusterMap]]
_kept = ExpiringAnswers(8)


def seen_map(request: HttpRequest) -> ClusterMap | None:
    """The newest map for the caller of a request; None before the first list of the cluster."""
    current = installed_map().current()
    return None if current is None else hide_unseen(current, visibility_of(request))


def hide_unseen(shown: ClusterMap, seen: Visibility) -> ClusterMap:
    """The same moment without the names of namespaces that are not seen.

    What is taken stays taken, at its placement, and is called unavailable. Texts that are no codes
    may name a Pod of any namespace and are hidden from whoever does not see every one.
    """
    if seen.everything:
        return shown
    visible = seen.among(_namespaces(shown))
    key = (id(shown), visible)
    kept = _kept.get(key)
    if kept is not None:
        return kept[0][1]
    hidden = ClusterMap(
        shown.version,
        tuple(_node(node, visible) for node in shown.nodes),
        tuple(pod for pod in shown.waiting if _namespace(pod.pod) in visible),
        # Capability and what still fits; pages take no Pod's name from here.
        shown.records,
    )
    _kept.put(key, (shown, hidden), KEPT_S)
    return hidden


def _node(node: NodeBlock, visible: frozenset[str]) -> NodeBlock:
    rows = tuple(_row(row, visible) for row in node.rows)
    return replace(node, rows=rows, notes=_notes(node.notes))


def _row(row: GpuRow, visible: frozenset[str]) -> GpuRow:
    cells = tuple(_cell(cell, visible) for cell in row.cells)
    return replace(row, cells=cells, notes=_notes(row.notes))


def _cell(cell: Cell, visible: frozenset[str]) -> Cell:
    if cell.state is CellState.FREE:
        return cell
    if cell.state is CellState.BLOCKED:
        return replace(cell, detail="")
    if all(_namespace(pod) in visible for pod in _pods(cell)):
        return cell
    return Cell(cell.placement, CellState.UNAVAILABLE)


def _notes(notes: tuple[str, ...]) -> tuple[str, ...]:
    known = [note if note in _CODES else UNAVAILABLE for note in notes]
    return tuple(dict.fromkeys(known))


def _namespaces(shown: ClusterMap) -> set[str]:
    cells = (cell for row in shown.rows.values() for cell in row.cells if cell.pod)
    found = {_namespace(pod) for cell in cells for pod in _pods(cell)}
    return found | {_namespace(pod.pod) for pod in shown.waiting}


def _pods(cell: Cell) -> list[str]:
    """Those of a cell, which are several where owners are in conflict."""
    return cell.pod.split(", ")


def _namespace(pod: str) -> str:
    return pod.partition("/")[0]
