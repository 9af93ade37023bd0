"""The picture of one GPU: an SVG row of its memory slices.

Positions are percentages of the row, so text keeps its size on every screen. Colours and patterns
come from the page's style sheet by class; ``PATTERNS`` must be on the page once.
"""

from __future__ import annotations

from html import escape
from typing import Final

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from hami_web.dashboard.cells import Cell, CellState, GpuRow
from hami_web.dashboard.wording import describe_cell, state_word

ROW_HEIGHT: Final = 84
CELL_HEIGHT: Final = 64
SHARED_GRIDS: Final = (4, 8)
"""Numbers of memory slices of most GPUs: drawn once for a page; others in each row."""
# Characters of a Pod's name that fit into one memory slice of a wide screen; more is cut by the
# cell's edge, and the whole name stands in the tip and in the table.
_NAME_LENGTH: Final = 13

_PATTERN_SHAPES: Final[dict[CellState, tuple[int, str]]] = {
    CellState.HELD: (10, '<path d="M-2,8 L2,12 M0,0 L10,10 M8,-2 L12,2"/>'),
    CellState.BOUND: (7, '<path d="M-1,1 L1,-1 M0,7 L7,0 M6,8 L8,6"/>'),
    CellState.TERMINATING: (6, '<path d="M0,3 H6"/>'),
    CellState.BLOCKED: (8, '<circle cx="2" cy="2" r="1.3"/><circle cx="6" cy="6" r="1.3"/>'),
    CellState.CONFLICTED: (8, '<path d="M0,0 L8,8 M8,0 L0,8"/>'),
    CellState.UNAVAILABLE: (10, '<path d="M5,0 V10"/>'),
}


def render_patterns() -> SafeString:
    """What the rows of a page refer to, fill patterns and grids; on a page once, first."""
    grids = "".join(
        f'<g id="grid-{size}">{_slots(size)}</g><g id="axis-{size}">{_numbers(size)}</g>'
        for size in SHARED_GRIDS
    )
    return mark_safe(  # noqa: S308 - constants only
        f'<svg class="patterns" width="0" height="0" aria-hidden="true">'
        f"<defs>{_fills()}{grids}</defs></svg>"
    )


def render_fills() -> SafeString:
    """The fill patterns alone, for pictures that hold their grids themselves."""
    return mark_safe(f"<defs>{_fills()}</defs>")  # noqa: S308 - constants only


def _fills() -> str:
    return "".join(
        f'<pattern id="fill-{state}" class="ink-{state}" width="{size}" height="{size}" '
        f'patternUnits="userSpaceOnUse">{shape}</pattern>'
        for state, (size, shape) in _PATTERN_SHAPES.items()
    )


def render_row(
    row: GpuRow, base: str = "?view=table", *, anchored: bool = False, alone: bool = False
) -> SafeString:
    """One GPU as SVG; every foreign text in it is escaped here.

    ``base`` is the address of the page with the table that cells lead to. With ``anchored`` each
    cell can be linked to; only where there are few, since it costs bytes. ``alone`` is a row for a
    file, where nothing is to be referred to.
    """
    name = gettext("Memory slices of GPU %(index)d on %(node)s") % {
        "index": row.index,
        "node": row.node,
    }
    cells = "".join(render_cell(cell, row, base, anchored=anchored) for cell in row.cells)
    return mark_safe(  # noqa: S308 - escaped piece by piece
        f'<svg class="memory" width="100%" height="{ROW_HEIGHT}" role="group" '
        f'aria-label="{escape(name)}">{render_grid(row.grid, alone=alone)}{cells}'
        f"{_axis(row.grid, alone=alone)}</svg>"
    )


def render_cell(
    cell: Cell, row: GpuRow, base: str = "?view=table", *, anchored: bool = False
) -> str:
    """One cell: a link to its line of the table; its title, which says all, is name and tip."""
    start, width = share(cell.placement.start, row.grid), share(cell.placement.size, row.grid)
    tip = escape(describe_cell(cell))
    fill = (
        f'<rect class="body" width="100%" height="{CELL_HEIGHT}" fill="url(#fill-{cell.state})"/>'
        if cell.state in _PATTERN_SHAPES
        else ""
    )
    identity = f' id="{escape(slice_anchor(cell, row))}"' if anchored else ""
    pod = f' data-pod="{escape(cell.pod)}"' if cell.pod else ""
    return (
        f'<a{identity} class="cell {cell.state} {_width_class(cell)}" '
        f'href="{escape(base)}#{escape(anchor(cell, row))}"{pod}><title>{tip}</title>'
        f'<svg x="{start}" width="{width}" height="{CELL_HEIGHT}">'
        f'<rect class="body ground" width="100%" height="{CELL_HEIGHT}"/>{fill}{_texts(cell)}'
        f"</svg></a>"
    )


def is_patterned(state: CellState) -> bool:
    """True when a state is drawn with a pattern, not with a plain area."""
    return state in _PATTERN_SHAPES


def anchor(cell: Cell, row: GpuRow) -> str:
    """Identity of a cell's line in the table."""
    return f"{row.uuid}-{cell.placement.start}"


def slice_anchor(cell: Cell, row: GpuRow) -> str:
    """Identity of a cell in the picture, by which people link to it: ``gpu-UUID-4:4``."""
    return f"gpu-{row.uuid}-{cell.placement}"


def _texts(cell: Cell) -> str:
    place, word = escape(str(cell.placement)), escape(state_word(cell.state))
    if cell.state is CellState.FREE:
        return (
            f'<text class="word" x="8" y="37">{word}</text>'
            f'<text class="place" x="8" y="54">{place}</text>'
        )
    names = ", ".join(name.rpartition("/")[2] for name in cell.pod.split(", "))
    pod = escape(_short(names, cell.placement.size))
    return (
        f'<text class="profile" x="8" y="19">{escape(cell.profile) or word}</text>'
        f'<text class="pod" x="8" y="37">{pod}</text>'
        f'<text class="place" x="8" y="54">{place}<tspan class="state"> {word}</tspan></text>'
    )


def render_grid(size: int, *, alone: bool = False) -> str:
    """The empty memory slices of a GPU, which lie under its cells."""
    if size in SHARED_GRIDS and not alone:
        return f'<use href="#grid-{size}"/>'
    return f'<g aria-hidden="true">{_slots(size)}</g>'


def _slots(size: int) -> str:
    return "".join(
        f'<rect class="memory-slice slot" x="{share(position, size)}" width="{share(1, size)}" '
        f'height="{CELL_HEIGHT}"/>'
        for position in range(size)
    )


def _axis(size: int, *, alone: bool) -> str:
    if size in SHARED_GRIDS and not alone:
        return f'<use class="axis" href="#axis-{size}" aria-hidden="true"/>'
    return f'<g class="axis" aria-hidden="true">{_numbers(size)}</g>'


def _numbers(size: int) -> str:
    return "".join(
        f'<text class="number" x="{share(position + 0.5, size)}" y="{ROW_HEIGHT - 5}">'
        f"{position}</text>"
        for position in range(size)
    )


def share(part: float, whole: int) -> str:
    """A part of a row as a percentage of its width."""
    return f"{part * 100 / whole:.6g}%"


def _width_class(cell: Cell) -> str:
    return "narrow" if cell.placement.size == 1 else "wide"


def _short(name: str, memory_slices: int) -> str:
    """Cut in the middle: Pods of one workload differ at the end of their names."""
    room = _NAME_LENGTH * memory_slices
    if len(name) <= room:
        return name
    tail = room // 3
    return f"{name[: room - tail - 1]}…{name[-tail:]}"
