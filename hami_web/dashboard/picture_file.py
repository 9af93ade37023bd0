"""Rows of GPUs as one SVG file with its own style: the page's, with every colour written out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from html import escape
from typing import Final

from django.conf import settings

from hami_web.dashboard.cluster_map import NodeBlock
from hami_web.dashboard.slice_map import ROW_HEIGHT, render_fills, render_row

THEMES: Final = ("light", "dark")
WIDTH: Final = 1280
_LABEL, _MARGIN, _HEADING, _GAP = 230, 20, 34, 8
_SHEETS: Final = {"light": ("dashboard.css",), "dark": ("dashboard.css", "dark.css")}
_RULE: Final = re.compile(r"^(?:\.memory|\.cell|\.ink-)[^{@]*\{[^}]*\}", re.MULTILINE)
_INLINE: Final = re.compile(r"(?<=\} )(?:\.memory|\.cell|\.ink-)[^{@]*\{[^}]*\}")
_FONT: Final = 'font-family: system-ui, "Noto Sans", "Noto Sans CJK SC", sans-serif'


def draw_picture(blocks: Iterable[NodeBlock], theme: str) -> str:
    """An SVG document; foreign text in it is escaped here and in the rows."""
    parts: list[str] = []
    y = _MARGIN
    for block in blocks:
        parts.append(
            f'<text class="heading" x="{_MARGIN}" y="{y + 18}">{escape(block.name)}</text>'
        )
        y += _HEADING
        for row in block.rows:
            label = f"GPU {row.index}"
            parts.append(
                f'<text class="label" x="{_MARGIN}" y="{y + 22}">{label}</text>'
                f'<text class="model" x="{_MARGIN}" y="{y + 40}">{escape(row.model)}</text>'
                f'<text class="model" x="{_MARGIN}" y="{y + 56}">{escape(row.node)}</text>'
                f'<svg x="{_LABEL}" y="{y}" width="{WIDTH - _LABEL - _MARGIN}" '
                f'height="{ROW_HEIGHT}">{render_row(row, "", alone=True)}</svg>'
            )
            y += ROW_HEIGHT + _GAP
    height = y + _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}"><style>{style(theme)}</style>'
        f'<rect class="page" width="{WIDTH}" height="{height}"/>'
        f"{render_fills()}{''.join(parts)}</svg>"
    )


@lru_cache(maxsize=2)
def style(theme: str) -> str:
    """The page's rules for cells, with the colours of a theme in place of their names."""
    folder = settings.BASE_DIR / "static" / "dashboard"
    sheets = [(folder / name).read_text(encoding="utf-8") for name in _SHEETS[theme]]
    colours = dict(
        pair for sheet in sheets for pair in re.findall(r"--([\w-]+): (#[0-9a-f]{6})", sheet)
    )
    # Rules of other media stand later and in blocks of their own.
    rules = sheets[0].partition("@media (max-width: 1100px)")[0]
    own = (
        f"svg {{ {_FONT}; }} .page {{ fill: var(--page); }} "
        ".heading { fill: var(--ink); font-size: 16px; font-weight: 650; } "
        ".label { fill: var(--ink); font-size: 14px; font-weight: 650; } "
        ".model { fill: var(--muted); font-size: 12px; } "
    )
    found = [*_RULE.findall(rules), *_INLINE.findall(rules)]
    text = own + " ".join(found)
    return re.sub(r"var\(--([\w-]+)\)", lambda name: colours[name[1]], text)
