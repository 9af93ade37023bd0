"""A GPU, a node or a Pod as it was at a moment, on the page that shows it now."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone

from hami_web.access.identity import visibility_of
from hami_web.dashboard import downloads, slice_map
from hami_web.dashboard.cluster_map import ClusterMap, NodeBlock
from hami_web.dashboard.moments import query, written
from hami_web.dashboard.pages import missing, respond
from hami_web.dashboard.past import past_map
from hami_web.dashboard.placement_sheet import placements_sheet
from hami_web.dashboard.pod_history import attempts_of, lives_of
from hami_web.dashboard.presentation import MapView, NodeView, legend
from hami_web.dashboard.seen import hide_unseen, seen_map

logger = logging.getLogger(__name__)

STEP: Final = timedelta(minutes=10)


def gpu_at(request: HttpRequest, uuid: str, at: datetime) -> HttpResponse:
    """One GPU as it was; 404 where the records have none, 503 where they cannot be read."""
    shown = _past(request, at)
    row = shown.rows.get(uuid) if shown else None
    if shown is None or row is None:
        return _nothing(request, f"GPU {uuid}", at, shown)
    blocks = [replace(shown.blocks[row.node], rows=(row,))]
    return _answer(request, f"GPU {row.index} · {row.node}", blocks, at)


def node_at(request: HttpRequest, name: str, at: datetime) -> HttpResponse:
    """One node as it was; answers as :func:`gpu_at` does."""
    shown = _past(request, at)
    block = shown.blocks.get(name) if shown else None
    if block is None:
        return _nothing(request, name, at, shown)
    return _answer(request, name, [block], at)


def pod_at(request: HttpRequest, namespace: str, name: str, at: datetime) -> HttpResponse:
    """One Pod as it was, with what it had been told by then; answers as :func:`gpu_at` does."""
    full = f"{namespace}/{name}"
    shown = _past(request, at)
    if shown is None:
        return _nothing(request, f"Pod {full}", at, shown)
    blocks = [
        replace(block, rows=rows)
        for block in shown.nodes
        if (rows := tuple(row for row in block.rows if row.has(full)))
    ]
    attempts, lives = attempts_of(namespace, name, at), lives_of(namespace, name, at)
    if attempts is None or lives is None:
        return _nothing(request, f"Pod {full}", at, None)
    if not (blocks or attempts or lives):
        return _nothing(request, f"Pod {full}", at, shown)
    told = {"of_pod": True, "attempts": attempts, "lives": lives}
    return _answer(request, f"Pod {full}", blocks, at, told)


def _past(request: HttpRequest, at: datetime) -> ClusterMap | None:
    try:
        return hide_unseen(past_map(at), visibility_of(request))
    except DatabaseError as error:
        logger.warning("the past cannot be read: %s", error)
        return None


def _nothing(
    request: HttpRequest, title: str, at: datetime, shown: ClusterMap | None
) -> HttpResponse:
    """404 where the past is known and has no such thing, 503 where it cannot be read."""
    current = seen_map(request)
    if shown is not None:
        return missing(request, title, current)
    context = {"title": title, "readable": False, **_ways(request, at)}
    status = HTTPStatus.SERVICE_UNAVAILABLE
    return respond(request, "dashboard/past.html", context, current=current, status=status)


def _answer(
    request: HttpRequest,
    title: str,
    blocks: list[NodeBlock],
    at: datetime,
    more: Mapping[str, object] = MappingProxyType({}),
) -> HttpResponse:
    """The page, or what is asked of it as a file."""
    current, wanted = seen_map(request), downloads.asked_format(request, downloads.DRAWN)
    version = current.version if current else 0
    if wanted == "svg":
        return downloads.picture(blocks, "past", downloads.asked_theme(request), version)
    if wanted:
        rows = [row for block in blocks for row in block.rows]
        return downloads.answer(placements_sheet("past", rows), wanted, version)
    context = {
        "title": title,
        "nodes": [NodeView(block, at=query(at)) for block in blocks],
        "readable": True,
        "legend": legend(MapView(ClusterMap(0, tuple(blocks)))),
        "patterns": slice_map.render_patterns(),
        "downloads": downloads.links(request, picture=True),
        **_ways(request, at),
        **more,
    }
    return respond(request, "dashboard/past.html", context, current=current)


def _ways(request: HttpRequest, at: datetime) -> dict[str, object]:
    """The moment, and addresses that lead to others."""
    return {
        "at": at,
        "now": request.path,
        "history": f"{reverse('dashboard:history')}{query(at)}",
        "earlier": f"{request.path}{query(at - STEP)}",
        "later": f"{request.path}{query(min(at + STEP, timezone.now()))}",
        "written": written(at),
    }
