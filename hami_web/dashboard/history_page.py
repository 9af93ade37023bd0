"""The page of the past: the map of a moment, and what changed since."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from hami_web.access.declared import needs
from hami_web.access.identity import visibility_of
from hami_web.access.roles import Verb
from hami_web.core.errors import InvalidField
from hami_web.dashboard import downloads, slice_map
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.history_wording import change_words
from hami_web.dashboard.moments import asked_moment, query, written
from hami_web.dashboard.pages import refused, respond
from hami_web.dashboard.past import past_map
from hami_web.dashboard.presentation import MapView, legend
from hami_web.dashboard.seen import hide_unseen, seen_map
from hami_web.dashboard.sheets import changes_sheet
from hami_web.history.changes import Change, Wanted, changes
from hami_web.reservations.models import MigReservation

logger = logging.getLogger(__name__)

SLIDER: Final = timedelta(hours=24)
DEFAULT: Final = timedelta(hours=1)
CHANGES_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One change in words; ``where`` names GPU and placement, ``who`` the Pod."""

    change: Change
    words: str
    where: str
    who: str


@needs(Verb.READ)
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """The map ``at`` a moment; ``ago`` in minutes leads there. 503 without a database."""
    now, current = timezone.now(), seen_map(request)
    try:
        if "ago" in request.GET:
            return redirect(_address(now - parse_ago(request.GET["ago"])))
        moment = asked_moment(request, now) or now - DEFAULT
        wanted = downloads.asked_format(request, downloads.DRAWN)
        theme = downloads.asked_theme(request)
    except InvalidField as error:
        return refused(request, error, current)
    seen = visibility_of(request)
    asked = Wanted(moment, now, seen.restrict(MigReservation.objects.all(), "namespace"))
    context: dict[str, object] = {
        "at": moment,
        "written": written(moment),
        "minutes": max(0, round((now - moment).total_seconds() / 60)),
        "slider": round(SLIDER.total_seconds() / 60),
        "earlier": _address(moment - timedelta(minutes=10)),
        "later": _address(min(moment + timedelta(minutes=10), now)),
    }
    try:
        past = MapView(hide_unseen(past_map(moment), seen), at=query(moment))
        found = changes(asked, limit=CHANGES_MAX + 1)
    except DatabaseError as error:
        logger.warning("the past cannot be read: %s", error)
        status = HTTPStatus.SERVICE_UNAVAILABLE
        return respond(request, "dashboard/history.html", context, current=current, status=status)
    if wanted:
        return _file(past, found[:CHANGES_MAX], wanted, theme)
    context |= {
        "downloads": downloads.links(request, picture=True, at=written(moment)),
        "readable": True,
        "past": past,
        "totals": past.totals,
        "legend": legend(past),
        "patterns": slice_map.render_patterns(),
        "changes": [_line(item, current) for item in found[:CHANGES_MAX]],
        "more": len(found) > CHANGES_MAX,
    }
    return respond(request, "dashboard/history.html", context, current=current)


def _file(past: MapView, found: Sequence[Change], wanted: str, theme: str) -> HttpResponse:
    """The map of the moment as a picture, or what changed since as rows."""
    if wanted == "svg":
        return downloads.picture(past.source.nodes, "history", theme, past.version)
    return downloads.answer(changes_sheet(found), wanted, past.version)


def parse_ago(text: str) -> timedelta:
    """Minutes back. Raises InvalidField."""
    most = round(SLIDER.total_seconds() / 60)
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) <= most):
        raise InvalidField("ago", text, f"minutes in 0…{most}")
    return timedelta(minutes=int(text))


def _address(moment: datetime) -> str:
    return f"{reverse('dashboard:history')}{query(moment)}"


def _line(change: Change, current: ClusterMap | None) -> ChangeLine:
    row = current.rows.get(change.gpu_uuid) if current else None
    gpu = f"GPU {row.index}" if row else change.gpu_uuid
    place = "" if change.start is None else f"{change.start}:{change.size}"
    where = " ".join(part for part in (change.node, gpu, place) if part)
    who = f"{change.namespace}/{change.pod}" if change.pod else ""
    return ChangeLine(change, change_words(change.entity, change.change), where, who)
