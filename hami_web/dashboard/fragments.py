"""The parts of a page that changed, drawn once for all streams that show the same."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from django.template.loader import render_to_string
from django.utils import translation

from hami_web.dashboard.brief_rows import BriefRows
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.live import EVERYTHING
from hami_web.dashboard.map_query import MapQuery
from hami_web.dashboard.presentation import GpuView, MapView

SUMMARY: Final = "summary"
MOST: Final = 6
"""More than so many parts are named, and fetched by the pages that show them."""
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class PartStyle:
    """How a page has its parts: in which language, and with ``brief`` rows or whole ones."""

    language: str
    brief: bool = False


def drawn_parts(shown: ClusterMap, changed: Iterable[str], style: PartStyle) -> dict[str, str]:
    """HTML by name: rows of GPUs that changed, and the summary; nothing for large changes."""
    names = dict.fromkeys((*changed, SUMMARY))
    if EVERYTHING in names or len(names) > MOST:
        return {}
    return {name: html for name in names if (html := _drawn(shown, name, style))}


def _drawn(shown: ClusterMap, name: str, style: PartStyle) -> str:
    """Kept by the map itself: who sees other names has another map."""
    with _lock:
        html = shown.drawn.get((style, name))
        if html is None:
            with translation.override(style.language):
                html = _render(shown, name, brief=style.brief)
            shown.drawn[style, name] = html
        return html


def _render(shown: ClusterMap, name: str, *, brief: bool) -> str:
    if name == SUMMARY:
        view = MapView(shown, MapQuery())
        return render_to_string("dashboard/summary.html", {"map": view, "totals": view.totals})
    row = shown.rows.get(name)
    if row and brief:
        return BriefRows(shown).row(row)
    return render_to_string("dashboard/gpu.html", {"gpu": GpuView(row)}) if row else ""
