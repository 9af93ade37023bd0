"""Measures the cluster map of 2,000 GPUs in a process of its own; prints figures as JSON.

The bare rendering is what no page could do without: each GPU's picture and its few words, joined
from strings, without templates, middleware or compression.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hami_web.settings")
django.setup()

# isort: split
from django.core.handlers.base import BaseHandler  # noqa: E402  # Django must be set up first
from django.test import RequestFactory  # noqa: E402

from hami_web.dashboard import installed  # noqa: E402
from hami_web.dashboard.brief_rows import BriefRows  # noqa: E402
from hami_web.dashboard.cells import CellState, GpuRow  # noqa: E402
from hami_web.dashboard.cluster_map import ClusterMap, NodeBlock  # noqa: E402
from hami_web.dashboard.events import change_event  # noqa: E402
from hami_web.dashboard.fragments import PartStyle, drawn_parts  # noqa: E402
from hami_web.dashboard.live import Change, differences  # noqa: E402
from tests.dashboard.given import GivenMap  # noqa: E402
from tests.dashboard.large import large_map  # noqa: E402

GPUS: Final = 2_000
TIMES: Final = 7


def bare(shown: ClusterMap) -> str:
    """The pictures and words of the same rows as strings."""
    rows = BriefRows(shown)
    parts = []
    for node in shown.nodes:
        parts.append(f"<section><h2>{node.name}</h2>")
        parts.extend(rows.row(row) for row in node.rows)
        parts.append("</section>")
    return "".join(parts)


def least(call: Callable[[], object]) -> float:
    """Processor seconds of the fastest of several calls."""
    call()
    found = []
    for _ in range(TIMES):
        began = time.process_time()
        call()
        found.append(time.process_time() - began)
    return min(found)


def change(shown: ClusterMap) -> tuple[ClusterMap, GpuRow]:
    """The same cluster after one reservation was realized."""
    node = shown.nodes[17]
    row = next(row for row in node.rows if any(c.state is CellState.BOUND for c in row.cells))
    cells = tuple(
        replace(cell, state=CellState.REALIZED) if cell.state is CellState.BOUND else cell
        for cell in row.cells
    )
    new = replace(row, cells=cells)
    rows = tuple(new if item is row else item for item in node.rows)
    nodes = tuple(NodeBlock(node.name, rows) if item is node else item for item in shown.nodes)
    return ClusterMap(2, nodes), new


def main() -> None:
    """Print what was measured."""
    shown = large_map(GPUS)
    live = GivenMap()
    live.show(shown)
    installed.install_map(live)
    handler = BaseHandler()
    handler.load_middleware()
    requests = RequestFactory(headers={"host": "localhost"})

    def get(path: str, **headers: str) -> Any:
        answer = handler.get_response(requests.get(path, headers=headers))
        assert answer.status_code == 200, answer.status_code
        return answer

    pairs = [(least(lambda: get("/")), least(lambda: bare(shown))) for _ in range(3)]
    page = get("/").content
    after, row = change(shown)
    changed = differences(shown, after)
    told = Change(after.version, tuple(changed))
    moved = len(
        change_event(told, drawn_parts(after, changed, PartStyle("en", brief=True))).encode()
    )
    figures = {
        "page": min(ours for ours, _ in pairs),
        "bare": min(theirs for _, theirs in pairs),
        "bytes": len(page),
        "gzipped": len(gzip.compress(page, 6)),
        "changed": changed,
        "of": row.uuid,
        "moved": moved,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
