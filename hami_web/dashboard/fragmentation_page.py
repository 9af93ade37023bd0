"""The page of fragmentation: how much room is lost, where, and since when."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from hami_web.access.declared import needs
from hami_web.access.roles import Verb
from hami_web.core.errors import InvalidField
from hami_web.dashboard import downloads
from hami_web.dashboard.curve import Curve, draw_curve
from hami_web.dashboard.pages import missing, refused, respond
from hami_web.dashboard.room import cluster_heat, model_heats, node_heats, room_lines
from hami_web.dashboard.seen import seen_map
from hami_web.dashboard.sheets import rooms_sheet
from hami_web.history.models import Sample

logger = logging.getLogger(__name__)

RANGE: Final = timedelta(days=7)
RANGE_MIN: Final = timedelta(minutes=1)
SAMPLES_MAX: Final = 12_000
"""A week of samples taken once a minute is 10,080."""


@needs(Verb.READ)
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Fragmentation of the cluster; 503 before it is known."""
    current = seen_map(request)
    if current is None:
        return missing(request, "", None)
    try:
        wanted = downloads.asked_format(request)
    except InvalidField as error:
        return refused(request, error, current)
    rooms = room_lines(current)
    if wanted:
        return downloads.answer(rooms_sheet(rooms), wanted, current.version)
    context = {
        "heat": cluster_heat(current),
        "models": model_heats(current),
        "rooms": rooms,
        "downloads": downloads.links(request),
        "nodes": node_heats(current),
        "curve": (curve := _curve()),
        "is_young": curve is not None and curve.until - curve.since < RANGE,
    }
    return respond(request, "dashboard/fragmentation.html", context, current=current)


def _curve() -> Curve | None:
    """Samples of the cluster of the last week, one query; None where they cannot be read."""
    until = timezone.now()
    rows = Sample.objects.filter(node="", at__gte=until - RANGE).order_by("at")
    try:
        points = list(rows.values_list("at", "fragmentation")[:SAMPLES_MAX])
    except DatabaseError as error:
        logger.warning("samples of fragmentation cannot be read: %s", error)
        return None
    # A young history fills the picture too, where a week of it would be a thin line.
    since = max(until - RANGE, min((points[0][0] if points else until), until - RANGE_MIN))
    return draw_curve(points, since, until)
