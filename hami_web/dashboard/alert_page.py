"""The page of alerts: what someone should look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from hami_web.access.declared import needs
from hami_web.access.identity import visibility_of
from hami_web.access.roles import Verb
from hami_web.access.visibility import UNAVAILABLE
from hami_web.core.errors import InvalidField
from hami_web.dashboard import columns, downloads
from hami_web.dashboard.history_wording import alert_words
from hami_web.dashboard.newest import SHOWN_MAX, list_page, newest
from hami_web.dashboard.pages import refused
from hami_web.dashboard.seen import seen_map
from hami_web.dashboard.sheets import alerts_sheet
from hami_web.history.models import Alert

SHOW: Final = ("current", "all")


@dataclass(frozen=True, slots=True)
class AlertLine:
    """One alert with its words."""

    alert: Alert
    title: str
    mend: str


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
        chosen = columns.asked_columns(request, columns.ALERTS)
    except InvalidField as error:
        return refused(request, error, shown)
    rows = visibility_of(request).restrict(Alert.objects.all(), "namespace")
    if show == "current":
        rows = rows.filter(resolved_at=None)
    found = newest(rows)
    everything = visibility_of(request).everything
    lines = [_line(row, everything=everything) for row in (found or ())[:SHOWN_MAX]]
    if wanted and found is not None:
        sheet = alerts_sheet(line.alert for line in lines)
        return downloads.answer(sheet, wanted, shown.version if shown else 0)
    context = {
        "downloads": downloads.links(request),
        "columns": chosen,
        "lines": lines,
        "show": show,
        "more": len(found or ()) > SHOWN_MAX,
    }
    return list_page(request, "dashboard/alerts.html", context, readable=found is not None)


def _line(alert: Alert, *, everything: bool) -> AlertLine:
    """Texts of no namespace tell what agents say, which may name any Pod."""
    if not everything and not alert.namespace:
        alert.text = gettext(UNAVAILABLE)
    return AlertLine(alert, *alert_words(alert.code))
