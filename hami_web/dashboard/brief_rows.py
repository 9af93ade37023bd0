"""Rows of a large map: what a dense map shows, and nothing that it hides.

Most of a whole row's compressed bytes are names: of Pods, of instances, and of the GPU once per
cell. Here a cell is made of its profile, placement and state alone, so that equal cells are equal
text, which compresses to little; the row is one link to the page of its GPU, where everything
stands. The page's script puts the whole row in its place as soon as someone points at it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from html import escape
from typing import Final
from urllib.parse import quote

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from hami_web.dashboard.cells import Cell, CellState, Fit, GpuRow
from hami_web.dashboard.cluster_map import ClusterMap, NodeBlock
from hami_web.dashboard.slice_map import is_patterned, render_grid, share
from hami_web.dashboard.wording import (
    describe_fits,
    describe_rows,
    group_name,
    note_words,
    state_word,
)

ABOVE: Final = 300
"""Maps of more GPUs are drawn with these rows, where nobody asked for more room for each."""
_ANY: Final = "_"


class BriefRows:
    """Draws one page, in the language that is active meanwhile; foreign text is escaped here.

    Cells of Pods that have more than one carry the name, by which they light up together.
    """

    def __init__(self, shown: ClusterMap) -> None:
        self._shown = shown
        self._gpu = reverse("dashboard:gpu-page", args=[_ANY]).removesuffix(_ANY)
        self._node = reverse("dashboard:node-page", args=[_ANY]).removesuffix(_ANY)
        self._word = cache(state_word)
        self._cells: dict[tuple[object, ...], str] = {}
        self._fits: dict[tuple[Fit, ...], str] = {}

    def render(self, blocks: Iterable[NodeBlock], *, group: str = "node") -> SafeString:
        """Nodes, or models or pools, with their rows."""
        sections = [self._block(block, group) for block in blocks]
        return mark_safe("".join(sections))  # noqa: S308 - escaped piece by piece

    def _block(self, block: NodeBlock, group: str) -> str:
        name, is_node = escape(block.name), group == "node"
        told = describe_rows(block.rows, by_node=group == "model")
        title = self._node_link(block.name) if is_node else escape(group_name(block.name))
        rows = "".join(
            self.row(row)
            if is_node
            else f'<p class="of-node">{self._node_link(row.node)}</p>{self.row(row)}'
            for row in block.rows
        )
        noted = " noted" if block.notes else ""
        return (
            f'<section class="node{noted}" aria-labelledby="node-{name}"><header>'
            f'<h2 id="node-{name}">{title}</h2>'
            f"<p>{escape(told)}</p>"
            f"{_notes(block.notes)}</header>\n{rows}</section>\n"
        )

    def row(self, row: GpuRow) -> str:
        """One GPU."""
        name = self._shown.short_name(row.uuid)
        address = self._gpu + quote(name, safe="")
        cells = "".join([self._cell(cell, row.grid) for cell in row.cells])
        return (
            f'<article class="gpu brief" id="gpu-{escape(name)}"><a href="{escape(address)}">'
            f'<h3>GPU {row.index}</h3><svg class="memory">{render_grid(row.grid)}{cells}'
            f'</svg></a>{_notes(row.notes)}<p class="fits">{self._fit(row.fits)}</p></article>\n'
        )

    def _cell(self, cell: Cell, grid: int) -> str:
        pod = cell.pod if cell.pod in self._shown.kin else ""
        key = (cell.placement, cell.state, cell.profile, pod, grid)
        html = self._cells.get(key)
        if html is None:
            html = self._cells[key] = self._new_cell(cell, pod, grid)
        return html

    def _new_cell(self, cell: Cell, pod: str, grid: int) -> str:
        """As short as can be: a compressor finds again what was within the last 32 KiB."""
        start, width = share(cell.placement.start, grid), share(cell.placement.size, grid)
        state = self._word(cell.state)
        title = ", ".join(filter(None, (cell.profile, state, str(cell.placement))))
        fill = '<rect class="fill"/>' if is_patterned(cell.state) else ""
        named = f' data-pod="{escape(pod)}"' if pod else ""
        word = "" if cell.state is CellState.FREE else cell.profile or state
        text = f"<text>{escape(word)}</text>" if word else ""
        return (
            f'<svg class="cell {cell.state}" x="{start}" width="{width}"{named}>'
            f'<title>{escape(title)}</title><rect class="ground"/>{fill}{text}</svg>'
        )

    def _fit(self, fits: tuple[Fit, ...]) -> str:
        html = self._fits.get(fits)
        if html is None:
            html = self._fits[fits] = escape(describe_fits(fits))
        return html

    def _node_link(self, name: str) -> str:
        address = self._node + quote(name, safe="")
        return f'<a href="{escape(address)}">{escape(name)}</a>'


def _notes(codes: tuple[str, ...]) -> str:
    if not codes:
        return ""
    notes = "".join(f"<li>{escape(note_words(code))}</li>" for code in codes)
    return f'<ul class="notes">{notes}</ul>'
