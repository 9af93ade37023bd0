"""The pages of alerts and of drift: what someone should look at, and what the mirror had wrong."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from django.db import DatabaseError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from hami_web.access.declared import needs
from hami_web.access.identity import visibility_of
from hami_web.access.roles import Verb
from hami_web.access.visibility import UNAVAILABLE
from hami_web.core.errors import InvalidField
from hami_web.dashboard import downloads
from hami_web.dashboard.history_wording import alert_words, cause_words, kind_words
from hami_web.dashboard.pages import refused, respond
from hami_web.dashboard.seen import seen_map
from hami_web.dashboard.sheets import alerts_sheet, drift_sheet
from hami_web.history.models import Alert, Drift, Reconciliation

logger = logging.getLogger(__name__)

SHOWN_MAX: Final = 200
SHOW: Final = ("current", "all")


@dataclass(frozen=True, slots=True)
class AlertLine:
    """One alert with its words."""

    alert: Alert
    title: str
    mend: str


@dataclass(frozen=True, slots=True)
class DriftLine:
    """One correction with its words."""

    drift: Drift
    cause: str
    kind: str


@needs(Verb.READ)
@require_safe
def alerts(request: HttpRequest) -> HttpResponse:
    """Open and acknowledged alerts, or all with ``show=all``; 503 without a database."""
    shown = seen_map(request)
    show = request.GET.get("show", SHOW[0])
    if show not in SHOW:
        return refused(request, InvalidField("show", show, ", ".join(SHOW)), shown)
    try:
        wanted = downloads.asked_format(request)
    except InvalidField as error:
        return refused(request, error, shown)
    rows = visibility_of(request).restrict(Alert.objects.all(), "namespace")
    if show == "current":
        rows = rows.filter(resolved_at=None)
    found = _read(rows)
    everything = visibility_of(request).everything
    lines = [_line(row, everything=everything) for row in (found or ())[:SHOWN_MAX]]
    if wanted and found is not None:
        sheet = alerts_sheet(line.alert for line in lines)
        return downloads.answer(sheet, wanted, shown.version if shown else 0)
    context = {
        "downloads": downloads.links(request),
        "lines": lines,
        "show": show,
        "more": len(found or ()) > SHOWN_MAX,
    }
    return _answer(request, "dashboard/alerts.html", context, readable=found is not None)


@needs(Verb.READ)
@require_safe
def drift(request: HttpRequest) -> HttpResponse:
    """What reconciliation corrected, newest first, and when it last compared; 503 as above."""
    shown = seen_map(request)
    try:
        wanted = downloads.asked_format(request)
    except InvalidField as error:
        return refused(request, error, shown)
    everything = visibility_of(request).everything
    found = _read(Drift.objects.all()) if everything else []
    compared = _read(Reconciliation.objects.all()) if found is not None else None
    lines = [
        DriftLine(row, cause_words(row.cause), kind_words(row.kind))
        for row in (found or ())[:SHOWN_MAX]
    ]
    if wanted and found is not None:
        sheet = drift_sheet(line.drift for line in lines)
        return downloads.answer(sheet, wanted, shown.version if shown else 0)
    context = {
        "downloads": downloads.links(request),
        "lines": lines,
        "last": compared[0] if compared else None,
        "hidden": not everything,
        "more": len(found or ()) > SHOWN_MAX,
    }
    return _answer(request, "dashboard/drift.html", context, readable=compared is not None)


def _line(alert: Alert, *, everything: bool) -> AlertLine:
    """Texts of no namespace tell what agents say, which may name any Pod."""
    if not everything and not alert.namespace:
        alert.text = gettext(UNAVAILABLE)
    return AlertLine(alert, *alert_words(alert.code))


def _read(rows: QuerySet[Any]) -> list[Any] | None:
    """The newest rows and one more, one query; None where they cannot be read."""
    try:
        return list(rows[: SHOWN_MAX + 1])
    except DatabaseError as error:
        logger.warning("%s cannot be read: %s", rows.model.__name__, error)
        return None


def _answer(
    request: HttpRequest, template: str, context: dict[str, Any], *, readable: bool
) -> HttpResponse:
    status = HTTPStatus.OK if readable else HTTPStatus.SERVICE_UNAVAILABLE
    context["readable"] = readable
    return respond(request, template, context, current=seen_map(request), status=status)
