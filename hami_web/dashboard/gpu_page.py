"""The page of one GPU: what is on it, what still fits where, and who was on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import quote

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_safe

from hami_web.access.declared import needs
from hami_web.access.identity import visibility_of
from hami_web.access.roles import Verb
from hami_web.core.errors import InvalidField
from hami_web.dashboard import downloads, slice_map
from hami_web.dashboard.legal_placements import profile_lines
from hami_web.dashboard.moments import AGO, asked_moment
from hami_web.dashboard.occupation import occupation_of
from hami_web.dashboard.pages import missing, refused, respond
from hami_web.dashboard.past_page import gpu_at
from hami_web.dashboard.placement_sheet import placements_sheet
from hami_web.dashboard.presentation import GpuView, legend
from hami_web.dashboard.room import gpu_heat
from hami_web.dashboard.seen import seen_map
from hami_web.dashboard.side_by_side import Sees, sides_of
from hami_web.dashboard.spent import SHOWN_DAYS, spent


@needs(Verb.READ)
@require_safe
def page(request: HttpRequest, uuid: str) -> HttpResponse:
    """One GPU by UUID; 404 where the cluster does not have it, 503 before it is known.

    A short name leads to the UUID; ``at`` shows it as it was.
    """
    current, now = seen_map(request), timezone.now()
    try:
        at = asked_moment(request, now)
        wanted = downloads.asked_format(request, downloads.DRAWN)
        theme = downloads.asked_theme(request)
    except InvalidField as error:
        return refused(request, error, current)
    if at is not None:
        return gpu_at(request, uuid, at)
    row = current.find_gpu(uuid) if current else None
    if row and row.uuid != uuid:
        return redirect(request.get_full_path().replace(quote(uuid), quote(row.uuid), 1))
    record = current.gpu_record(row) if current and row else None
    if current is None or row is None or record is None:
        return missing(request, f"GPU {uuid}", current)
    if wanted == "svg":
        blocks = [replace(current.blocks[row.node], rows=(row,))]
        return downloads.picture(blocks, "gpu", theme, current.version)
    if wanted:
        return downloads.answer(placements_sheet("gpu", [row]), wanted, current.version)
    context = {
        "downloads": downloads.links(request, picture=True),
        "gpu": GpuView(row, alone=True),
        "record": record,
        "heat": gpu_heat(record),
        "profiles": profile_lines(record, row),
        "history": occupation_of(uuid, row.grid, now, _pod_name(request)),
        "sides": sides_of(record, _sees(request)),
        "used": spent(Q(gpu_uuid=uuid), now, SHOWN_DAYS),
        "ago": now - AGO,
        "legend": legend(None),
        "patterns": slice_map.render_patterns(),
    }
    return respond(request, "dashboard/gpu_page.html", context, current=current)


def _sees(request: HttpRequest) -> Sees:
    """Whether a namespace may be named; ``*`` asks for all of them."""
    seen = visibility_of(request)
    return lambda namespace: seen.everything if namespace == "*" else seen.sees(namespace)


def _pod_name(request: HttpRequest) -> Callable[[str, str], str]:
    """The name of a Pod where the caller may see it, else none."""
    seen = visibility_of(request)
    return lambda namespace, pod: f"{namespace}/{pod}" if seen.sees(namespace) else ""
