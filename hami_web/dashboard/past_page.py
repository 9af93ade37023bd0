"""A GPU or a node as it was at a moment, on the page that shows it now."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone

from hami_web.access.identity import visibility_of
from hami_web.dashboard import slice_map
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.moments import query, written
from hami_web.dashboard.pages import missing, respond
from hami_web.dashboard.past import past_map
from hami_web.dashboard.presentation import MapView, NodeView, legend
from hami_web.dashboard.seen import hide_unseen, seen_map

logger = logging.getLogger(__name__)

STEP: Final = timedelta(minutes=10)


def gpu_at(request: HttpRequest, uuid: str, at: datetime) -> HttpResponse:
    """One GPU as it was; 404 where the records have none, 503 where they cannot be read."""
    shown = _past(request, at)
    row = shown.rows.get(uuid) if shown else None
    if shown is not None and row is None:
        return missing(request, f"GPU {uuid}", seen_map(request))
    nodes = []
    if shown is not None and row is not None:
        nodes = [NodeView(replace(shown.blocks[row.node], rows=(row,)), at=query(at))]
    title = f"GPU {row.index} · {row.node}" if row else f"GPU {uuid}"
    return _answer(request, title, nodes, at, shown)


def node_at(request: HttpRequest, name: str, at: datetime) -> HttpResponse:
    """One node as it was; answers as :func:`gpu_at` does."""
    shown = _past(request, at)
    block = shown.blocks.get(name) if shown else None
    if shown is not None and block is None:
        return missing(request, name, seen_map(request))
    nodes = [NodeView(block, at=query(at))] if block else []
    return _answer(request, name, nodes, at, shown)


def _past(request: HttpRequest, at: datetime) -> ClusterMap | None:
    try:
        return hide_unseen(past_map(at), visibility_of(request))
    except DatabaseError as error:
        logger.warning("the past cannot be read: %s", error)
        return None


def _answer(
    request: HttpRequest,
    title: str,
    nodes: list[NodeView],
    at: datetime,
    shown: ClusterMap | None,
) -> HttpResponse:
    later = min(at + STEP, timezone.now())
    context = {
        "title": title,
        "nodes": nodes,
        "at": at,
        "now": request.path,
        "history": f"{reverse('dashboard:history')}{query(at)}",
        "earlier": f"{request.path}{query(at - STEP)}",
        "later": f"{request.path}{query(later)}",
        "written": written(at),
        "readable": shown is not None,
        "legend": legend(MapView(shown) if shown else None),
        "patterns": slice_map.render_patterns(),
    }
    status = HTTPStatus.OK if shown else HTTPStatus.SERVICE_UNAVAILABLE
    current = seen_map(request)
    return respond(request, "dashboard/past.html", context, current=current, status=status)
