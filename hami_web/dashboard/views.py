"""Pages and fragments. Each view reads the newest map of the process and renders it."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    StreamingHttpResponse,
)
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hami_web.access.declared import needs, public
from hami_web.access.roles import Verb
from hami_web.core.errors import InvalidField
from hami_web.dashboard import columns, downloads, slice_map
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.columns import Columns
from hami_web.dashboard.display import display_of
from hami_web.dashboard.events import seen_changes
from hami_web.dashboard.installed import installed_map, notices, problem
from hami_web.dashboard.map_controls import controls
from hami_web.dashboard.map_query import MapQuery, parse_query, select
from hami_web.dashboard.pages import marked, refused, respond
from hami_web.dashboard.placement_sheet import placements_sheet
from hami_web.dashboard.presentation import GpuView, MapView, legend
from hami_web.dashboard.seen import seen_map


@needs(Verb.READ)
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """The cluster map; 400 for a query that means nothing, 503 while the cluster is not known."""
    current = seen_map(request)
    try:
        wanted = downloads.asked_format(request, downloads.DRAWN)
        theme = downloads.asked_theme(request)
        chosen = columns.asked_columns(request, columns.MAP)
        query = parse_query({"density": display_of(request).density, **_chosen(request, chosen)})
    except InvalidField as error:
        return refused(request, error, current)
    if wanted and current:
        return _file(current, query, wanted, theme)
    status = HTTPStatus.OK if current else HTTPStatus.SERVICE_UNAVAILABLE
    shown = MapView(current, query) if current else None
    context = {**_context(shown), "query": query, "columns": chosen}
    context["controls"] = controls(query, current)
    context["downloads"] = downloads.links(request, picture=True) if current else ()
    return respond(request, "dashboard/page.html", context, current=current, status=status)


@needs(Verb.READ, fragment=True)
@require_safe
def summary(request: HttpRequest) -> HttpResponse:
    """The numbers above the map."""
    current = seen_map(request)
    response = render(request, "dashboard/summary.html", _context(_shown(current)))
    return marked(response, current.version if current else 0)


@needs(Verb.READ, fragment=True)
@require_safe
def gpu(request: HttpRequest, uuid: str) -> HttpResponse:
    """One GPU's row; 404 when the cluster does not have it (any more)."""
    current = seen_map(request)
    row = current.find_gpu(uuid) if current else None
    if row is None:
        raise Http404(f"no GPU {uuid}")
    response = render(request, "dashboard/gpu.html", {"gpu": GpuView(row)})
    return marked(response, current.version if current else 0)


@needs(Verb.READ, fragment=True)
async def events(request: HttpRequest) -> HttpResponseBase:
    """Server-Sent Events; ``since`` (or Last-Event-ID) is the version that the page shows."""
    since = request.headers.get("Last-Event-ID") or request.GET.get("since") or "0"
    version = int(since) if since.isascii() and since.isdigit() and len(since) < 17 else 0
    # May ask the API server.
    changes = await asyncio.to_thread(seen_changes, request, version)
    response = StreamingHttpResponse(changes, content_type="text/event-stream")
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"
    # Compression would keep events back until a block is full.
    response["Content-Encoding"] = "identity"
    return response


@public
@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return HttpResponse("ok\n", content_type="text/plain")


@public
@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """There is a map to show, and a database to say to whom.

    Below it what does not work elsewhere, which is no reason to stop.
    """
    unknown = "" if installed_map().current() else "the cluster is not known yet"
    if lacking := problem() or unknown:
        response = HttpResponse(
            f"{lacking}\n", status=503, content_type="text/plain; charset=utf-8"
        )
        # The cause was told when it came; Django would tell of every probe.
        response._has_been_logged = True  # type: ignore[attr-defined]  # noqa: SLF001
        return response
    return HttpResponse("\n".join(["ok", *notices(), ""]), content_type="text/plain")


def _chosen(request: HttpRequest, chosen: Columns) -> dict[str, str]:
    """The parameters but for those of a file, the columns in one."""
    given: dict[str, str] = request.GET.dict()
    if columns.NAME in given:
        given[columns.NAME] = ",".join(chosen.chosen)
    return {name: text for name, text in given.items() if name not in ("format", "theme")}


def _file(current: ClusterMap, query: MapQuery, wanted: str, theme: str) -> HttpResponse:
    """What the query leaves, as rows or as a picture."""
    if wanted == "svg":
        return downloads.picture(select(current, query), "map", theme, current.version)
    rows = [row for block in select(current, query) for row in block.rows]
    return downloads.answer(placements_sheet("map", rows), wanted, current.version)


def _shown(current: ClusterMap | None) -> MapView | None:
    return MapView(current, MapQuery()) if current else None


def _context(shown: MapView | None) -> dict[str, Any]:
    return {
        "map": shown,
        "totals": shown.totals if shown else (),
        "legend": legend(shown),
        "patterns": slice_map.render_patterns(),
    }
