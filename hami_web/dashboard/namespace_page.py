"""The pages of namespaces: all of them with their sums, and one in full."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

from django.db import DatabaseError
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from hami_web.access.declared import needs
from hami_web.access.identity import visibility_of
from hami_web.access.roles import Verb
from hami_web.core.errors import InvalidField
from hami_web.dashboard import columns, downloads, slice_map
from hami_web.dashboard.history_wording import alert_words
from hami_web.dashboard.holdings import Holding, Holdings, all_holdings
from hami_web.dashboard.pages import missing, refused, respond
from hami_web.dashboard.parameters import parse_text
from hami_web.dashboard.placement_sheet import placements_sheet
from hami_web.dashboard.presentation import GpuView, TableLine, pod_link
from hami_web.dashboard.seen import seen_map
from hami_web.dashboard.spent import DAYS, Spent, by_namespace, parse_days, spent
from hami_web.dashboard.wording import mebibytes
from hami_web.history.models import Alert
from hami_web.reservations.models import MigReservation

logger = logging.getLogger(__name__)

PICTURES_MAX: Final = 40
"""GPUs that are drawn; a namespace on more of them is better looked at on the map."""
LINES_MAX: Final = 200
TEXT_MAX: Final = 253


@dataclass(frozen=True, slots=True)
class NamespaceLine:
    """One namespace of the list; the last two are None where the mirror cannot be read."""

    holdings: Holdings
    gpu_hours: float | None
    alerts: int | None

    @property
    def memory(self) -> str:
        return mebibytes(self.holdings.memory_mib)


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """What a namespace has of one profile now, and had over the range (None: not readable)."""

    profile: str
    held: tuple[Holding, ...]
    gpu_hours: float | None
    instance_hours: float | None
    reservations: int | None

    @property
    def memory_slices(self) -> int:
        return sum(item.cell.placement.size for item in self.held)

    @property
    def memory(self) -> str:
        return mebibytes(sum(item.cell.memory_mib for item in self.held))


@dataclass(frozen=True, slots=True)
class AlertLine:
    """One open alert in words."""

    alert: Alert
    title: str
    mend: str


@needs(Verb.READ)
@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """Namespaces that have, wait for or used MIG devices; 503 before the cluster is known."""
    current = seen_map(request)
    if current is None:
        return missing(request, "", None)
    try:
        kind = downloads.asked_format(request)
        chosen = columns.asked_columns(request, columns.NAMESPACES)
        wanted = parse_text("q", request.GET.get("q", ""), TEXT_MAX)
        days = parse_days(request.GET.get("days", DAYS[0]))
    except InvalidField as error:
        return refused(request, error, current)
    seen = visibility_of(request)
    known = all_holdings(current)
    used = spent(Q(), timezone.now(), days)
    hours = by_namespace(used.rows) if used else None
    raised = _alert_counts()
    named = {*known, *(hours or ()), *(raised or ())} - {""}
    names = seen.among(name for name in named if wanted in name)
    lines = [
        NamespaceLine(
            known.get(name, Holdings(name)),
            None if hours is None else hours.get(name, 0.0),
            None if raised is None else raised[name],
        )
        for name in sorted(names)
    ]
    if kind:
        return downloads.answer(_sheet(lines), kind, current.version)
    context = {
        "downloads": downloads.links(request),
        "columns": chosen,
        "lines": lines,
        "q": wanted,
        "days": days,
        "ranges": DAYS,
        "readable": used is not None and raised is not None,
    }
    return respond(request, "dashboard/namespaces.html", context, current=current)


@needs(Verb.READ)
@require_safe
def page(request: HttpRequest, namespace: str) -> HttpResponse:
    """One namespace; 404 where nothing is known of it, 503 before the cluster is known."""
    current = seen_map(request)
    if current is None:
        return missing(request, namespace, None)
    try:
        kind = downloads.asked_format(request, downloads.DRAWN)
        theme = downloads.asked_theme(request)
        days = parse_days(request.GET.get("days", "7"))
    except InvalidField as error:
        return refused(request, error, current)
    held = all_holdings(current).get(namespace, Holdings(namespace))
    used = spent(Q(namespace=namespace), timezone.now(), days)
    alerts = _alerts(namespace)
    known = held.reservations or held.waiting or alerts or (used and used.rows)
    # What the mirror cannot tell may exist all the same.
    if not known and used is not None and not _was_there(namespace):
        what = gettext("namespace %(name)s") % {"name": namespace}
        return missing(request, what, current)
    if kind == "svg":
        blocks = [replace(current.blocks[row.node], rows=(row,)) for row in held.rows]
        return downloads.picture(blocks, "namespace", theme, current.version)
    if kind:
        own = [replace(item.row, cells=(item.cell,)) for item in held.reservations]
        return downloads.answer(placements_sheet("namespace", own), kind, current.version)
    context = {
        "downloads": downloads.links(request, picture=True),
        "namespace": namespace,
        "held": held,
        "memory": mebibytes(held.memory_mib),
        "rows": [GpuView(row) for row in held.rows[:PICTURES_MAX]],
        "hidden_gpus": max(0, len(held.rows) - PICTURES_MAX),
        "lines": [TableLine(item.cell, item.row) for item in held.reservations[:LINES_MAX]],
        "hidden_lines": max(0, len(held.reservations) - LINES_MAX),
        "waiting": [(pod_link(pod.pod), pod.reason) for pod in held.waiting],
        "profiles": profile_lines(held, used),
        "used": used,
        "days": days,
        "ranges": DAYS,
        "alerts": alerts,
        "patterns": slice_map.render_patterns(),
    }
    return respond(request, "dashboard/namespace.html", context, current=current)


def profile_lines(held: Holdings, used: Spent | None) -> list[ProfileLine]:
    """Every profile that is had now or was had over the range, by name."""
    now = held.by_profile()
    rows = {row.profile: row for row in used.rows} if used else {}
    return [
        ProfileLine(
            name,
            now.get(name, ()),
            _figure(used, rows[name].gpu_hours if name in rows else 0.0),
            _figure(used, rows[name].instance_hours if name in rows else 0.0),
            None if used is None else rows[name].reservations if name in rows else 0,
        )
        for name in sorted({*now, *rows})
    ]


def _sheet(lines: list[NamespaceLine]) -> downloads.Sheet:
    columns = (
        *("namespace", "reservations", "realized", "memory_slices", "memory_mib", "waiting"),
        *("gpu_hours", "alerts"),
    )
    rows = [
        (
            *(line.holdings.namespace, len(line.holdings.reservations), line.holdings.realized),
            *(line.holdings.memory_slices, line.holdings.memory_mib, len(line.holdings.waiting)),
            *(line.gpu_hours, line.alerts),
        )
        for line in lines
    ]
    return downloads.Sheet("namespaces", columns, rows)


def _figure(used: Spent | None, value: float) -> float | None:
    return None if used is None else value


def _alerts(namespace: str) -> tuple[AlertLine, ...] | None:
    """Alerts of the namespace that are not over, one query; None where they cannot be read."""
    rows = Alert.objects.filter(namespace=namespace, resolved_at=None)[:LINES_MAX]
    try:
        return tuple(AlertLine(row, *alert_words(row.code)) for row in rows)
    except DatabaseError as error:
        logger.warning("alerts cannot be read: %s", error)
        return None


def _alert_counts() -> Counter[str] | None:
    """Alerts that are not over by namespace, one query; None where they cannot be read."""
    try:
        return Counter(Alert.objects.filter(resolved_at=None).values_list("namespace", flat=True))
    except DatabaseError as error:
        logger.warning("alerts cannot be counted: %s", error)
        return None


def _was_there(namespace: str) -> bool:
    try:
        return MigReservation.objects.filter(namespace=namespace).exists()
    except DatabaseError:
        return True
