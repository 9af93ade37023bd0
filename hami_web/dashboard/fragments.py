"""The parts of a page that changed, drawn once for all streams that show the same."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Final

from django.template.loader import render_to_string
from django.utils import translation

from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.live import EVERYTHING
from hami_web.dashboard.map_query import MapQuery
from hami_web.dashboard.presentation import GpuView, MapView

SUMMARY: Final = "summary"
MOST: Final = 6
"""More than so many parts are named, and fetched by the pages that show them."""
_lock = threading.Lock()


def drawn_parts(shown: ClusterMap, changed: Iterable[str], language: str) -> dict[str, str]:
    """HTML by name: rows of GPUs that changed, and the summary; nothing for large changes."""
    names = dict.fromkeys((*changed, SUMMARY))
    if EVERYTHING in names or len(names) > MOST:
        return {}
    return {name: html for name in names if (html := _drawn(shown, name, language))}


def _drawn(shown: ClusterMap, name: str, language: str) -> str:
    """Kept by the map itself: who sees other names has another map."""
    with _lock:
        html = shown.drawn.get((language, name))
        if html is None:
            with translation.override(language):
                html = _render(shown, name)
            shown.drawn[language, name] = html
        return html


def _render(shown: ClusterMap, name: str) -> str:
    if name == SUMMARY:
        view = MapView(shown, MapQuery())
        return render_to_string("dashboard/summary.html", {"map": view, "totals": view.totals})
    row = shown.rows.get(name)
    return render_to_string("dashboard/gpu.html", {"gpu": GpuView(row)}) if row else ""
