"""The page of one GPU: what is on it, what still fits where, and who was on it."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from hami_web.access.declared import needs
from hami_web.access.identity import visibility_of
from hami_web.access.roles import Verb
from hami_web.dashboard import slice_map
from hami_web.dashboard.legal_placements import profile_lines
from hami_web.dashboard.occupation import occupation_of
from hami_web.dashboard.pages import missing, respond
from hami_web.dashboard.presentation import GpuView, legend
from hami_web.dashboard.room import gpu_heat
from hami_web.dashboard.seen import seen_map


@needs(Verb.READ)
@require_safe
def page(request: HttpRequest, uuid: str) -> HttpResponse:
    """One GPU by UUID; 404 where the cluster does not have it, 503 before it is known."""
    current = seen_map(request)
    row = current.rows.get(uuid) if current else None
    record = current.gpu_record(row) if current and row else None
    if current is None or row is None or record is None:
        return missing(request, f"GPU {uuid}", current)
    context = {
        "gpu": GpuView(row),
        "record": record,
        "heat": gpu_heat(record),
        "profiles": profile_lines(record, row),
        "history": occupation_of(uuid, row.grid, timezone.now(), _pod_name(request)),
        "legend": legend(None),
        "patterns": slice_map.render_patterns(),
    }
    return respond(request, "dashboard/gpu_page.html", context, current=current)


def _pod_name(request: HttpRequest) -> Callable[[str, str], str]:
    """The name of a Pod where the caller may see it, else none."""
    seen = visibility_of(request)
    return lambda namespace, pod: f"{namespace}/{pod}" if seen.sees(namespace) else ""
