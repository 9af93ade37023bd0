"""Alerts as rows: opened while a condition holds, acknowledged by people, resolved after it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta

from django.conf import settings

from hami_web.history.conditions import AlertCode, Condition, conditions_of_mirror
from hami_web.history.models import TEXT_MAX, Alert, AlertState
from hami_web.inventory.models import NAME_MAX
from hami_web.inventory.observed import storable
from hami_web.inventory.writing import writing

RESOLVED_AFTER_MAX = timedelta(minutes=2)
"""So long a condition must be away before it is over: one that comes and goes stays one alert."""
RESOLVED_LOOKS = 2
"""Where the mirror is compared more often, so many comparisons without it are enough."""
REOPENED_WITHIN = timedelta(hours=1)
"""A condition that returns so soon after it was over is the same alert again, and open."""
OF_MIRROR = frozenset(AlertCode) - {AlertCode.WORKER_SILENT, AlertCode.HANDOVER_REGRESSED}
_KEPT = (
    *("state", "text", "seen_at", "resolved_at", "reopened"),
    *("acknowledged_at", "acknowledged_by", "note"),
)
_CHUNK = 500


class AlertNotOpen(Exception):
    """Someone acknowledged this alert before, or its condition is over."""

    def __init__(self, alert: Alert) -> None:
        self.alert = alert
        super().__init__(f"alert {alert.pk} is {alert.state}, not open")


def acknowledge(alert_id: int, *, who: str, note: str = "", now: datetime | None = None) -> Alert:
    """Say that ``who`` knows of an open alert; it stays known until its condition was over.

    Raises Alert.DoesNotExist, or AlertNotOpen when another was first or the condition is over.
    The same person may say it again, with another note.
    """
    with writing():
        alert = Alert.objects.get(pk=alert_id)
        again = alert.state == AlertState.ACKNOWLEDGED and alert.acknowledged_by == who
        if not again and alert.state != AlertState.OPEN:
            raise AlertNotOpen(alert)
        alert.state = AlertState.ACKNOWLEDGED
        alert.acknowledged_at = now or datetime.now(UTC)
        alert.acknowledged_by = storable(who, NAME_MAX)
        alert.note = storable(note, TEXT_MAX)
        alert.save(update_fields=["state", "acknowledged_at", "acknowledged_by", "note"])
        return alert


def refresh_alerts(now: datetime) -> None:
    """Make the alerts of everything that the mirror shows follow what holds now."""
    with writing():
        settle_alerts(conditions_of_mirror(now), OF_MIRROR, now=now)


def settle_alerts(
    holding: Iterable[Condition], codes: Collection[AlertCode], *, now: datetime
) -> None:
    """Make the alerts of these codes follow the conditions that hold; inside a transaction."""
    found = {(item.code.value, item.subject): item for item in holding}
    away_since = now - _resolved_after()
    rows = list(Alert.objects.filter(code__in=codes, resolved_at=None))
    known = {(row.code, row.subject) for row in rows}
    missing = [item for key, item in found.items() if key not in known]
    returned = _returned(missing, now)
    for row in (*rows, *returned):
        condition = found.get((row.code, row.subject))
        if condition is not None:
            row.seen_at, row.text = now, storable(condition.text, TEXT_MAX)
        elif row.seen_at <= away_since:
            row.state, row.resolved_at = AlertState.RESOLVED, now
    Alert.objects.bulk_update([*rows, *returned], _KEPT, batch_size=_CHUNK)
    again = {(row.code, row.subject) for row in returned}
    Alert.objects.bulk_create(
        (_raise(item, now) for item in missing if (item.code.value, item.subject) not in again),
        batch_size=_CHUNK,
    )


def _resolved_after() -> timedelta:
    looks = timedelta(seconds=RESOLVED_LOOKS * settings.RECONCILE_SECONDS)
    return min(RESOLVED_AFTER_MAX, looks)


def _returned(missing: Iterable[Condition], now: datetime) -> list[Alert]:
    """Alerts that were resolved a short time ago and are open again; the newest of each."""
    keys = {(item.code.value, item.subject) for item in missing}
    if not keys:
        return []
    late = Alert.objects.filter(resolved_at__gte=now - REOPENED_WITHIN).order_by("resolved_at")
    found = {(row.code, row.subject): row for row in late if (row.code, row.subject) in keys}
    for row in found.values():
        row.state, row.resolved_at = AlertState.OPEN, None
        row.reopened += 1
        row.acknowledged_at, row.acknowledged_by, row.note = None, "", ""
    return list(found.values())


def _raise(found: Condition, now: datetime) -> Alert:
    return Alert(
        code=found.code.value,
        subject=found.subject,
        namespace=found.namespace,
        text=storable(found.text, TEXT_MAX),
        raised_at=now,
        seen_at=now,
    )
