"""The rows of pages as files have them: codes and numbers, no words of a language."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hami_web.access.models import AuditEntry
from hami_web.dashboard.downloads import Sheet
from hami_web.dashboard.room import RoomLine
from hami_web.history.models import Alert, Drift

ALERT = ("code", "state", "subject", "namespace", "text", "raised_at", "seen_at", "resolved_at")
AUDIT = (
    *("at", "actor", "source", "role", "verb", "kind", "namespace", "name", "outcome"),
    *("address", "request_id", "detail"),
)
DRIFT = ("at", "cause", "kind", "entity", "key", "detail")
ROOM = ("model", "profile", "fits_now", "could_fit", "lost")


def alerts_sheet(alerts: Iterable[Alert]) -> Sheet:
    """As they are shown: hidden texts are hidden here too."""
    return Sheet("alerts", ALERT, [_values(each, ALERT) for each in alerts])


def drift_sheet(rows: Iterable[Drift]) -> Sheet:
    """Corrections of the mirror."""
    return Sheet("drift", DRIFT, [_values(each, DRIFT) for each in rows])


def audit_sheet(entries: Iterable[AuditEntry]) -> Sheet:
    """Who did what."""
    return Sheet("audit", AUDIT, [_values(each, AUDIT) for each in entries])


def rooms_sheet(rooms: Iterable[RoomLine]) -> Sheet:
    """Room for each profile of each model."""
    rows = [
        (line.model, line.profile, line.room.now, line.room.packed, line.lost) for line in rooms
    ]
    return Sheet("fragmentation", ROOM, rows)


def _values(row: object, columns: Sequence[str]) -> list[object]:
    return [getattr(row, name) for name in columns]
