"""The rows of pages as files have them: codes and numbers, no words of a language."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hami_web.access.models import AuditEntry
from hami_web.dashboard.downloads import Sheet
from hami_web.dashboard.room import RoomLine
from hami_web.dashboard.side_by_side import Side
from hami_web.history.changes import Change
from hami_web.history.decisions import Said
from hami_web.history.models import Alert, Drift
from hami_web.reservations.models import MigReservation

ALERT = ("code", "state", "subject", "namespace", "text", "raised_at", "seen_at", "resolved_at")
AUDIT = (
    *("at", "actor", "source", "role", "verb", "kind", "namespace", "name", "outcome"),
    *("address", "request_id", "detail"),
)
_CORRECTION = ("at", "cause", "kind", "entity", "key", "detail")
DRIFT = (*_CORRECTION, "placement", "now", "now_reservation", "now_node", "now_mirror")
"""``now``: in what the three sources differ, ``agree`` where they do not."""
CHANGE = (
    *("at", "entity", "change", "namespace", "pod", "node", "gpu_uuid", "profile", "start", "size"),
    "detail",
)
_RESERVATION = (
    *("node", "gpu_uuid", "profile", "start", "size", "container_index", "device_index"),
    *("phase", "mig_uuid", "held_at", "reserved_at", "realized_at", "started_at"),
    *("terminating_at", "released_at"),
)
_ATTEMPT = ("said_by", "outcome", "code", "times", "first_at", "last_at", "message")
POD = ("row", "namespace", "pod", *_RESERVATION, *_ATTEMPT)
"""``row``: a ``reservation``, or an ``attempt`` to place the Pod."""
ROOM = ("model", "profile", "fits_now", "could_fit", "lost")


def alerts_sheet(alerts: Iterable[Alert]) -> Sheet:
    """As they are shown: hidden texts are hidden here too."""
    return Sheet("alerts", ALERT, [_values(each, ALERT) for each in alerts])


def drift_sheet(rows: Iterable[tuple[Drift, Side | None]]) -> Sheet:
    """Corrections of the mirror, and what each source says of their place now."""
    return Sheet("drift", DRIFT, [[*_values(row, _CORRECTION), *_now(side)] for row, side in rows])


def _now(side: Side | None) -> list[str]:
    if side is None:
        return [""] * (len(DRIFT) - len(_CORRECTION))
    told = side.difference or "agree"
    return [str(side.placement), told, side.annotation, side.node, side.mirror]


def audit_sheet(entries: Iterable[AuditEntry]) -> Sheet:
    """Who did what."""
    return Sheet("audit", AUDIT, [_values(each, AUDIT) for each in entries])


def rooms_sheet(rooms: Iterable[RoomLine]) -> Sheet:
    """Room for each profile of each model."""
    rows = [
        (line.model, line.profile, line.room.now, line.room.packed, line.lost) for line in rooms
    ]
    return Sheet("fragmentation", ROOM, rows)


def changes_sheet(found: Iterable[Change]) -> Sheet:
    """What changed, oldest first."""
    return Sheet("history", CHANGE, [_values(each, CHANGE) for each in found])


def pod_sheet(
    namespace: str, name: str, reservations: Iterable[MigReservation], attempts: Iterable[Said]
) -> Sheet:
    """What a Pod had, and what was said of it."""
    no_attempt, no_placement = [None] * len(_ATTEMPT), [None] * (len(_RESERVATION) - 1)
    rows = [
        ["reservation", namespace, name, *_values(row, _RESERVATION), *no_attempt]
        for row in reservations
    ]
    rows += [
        ["attempt", namespace, name, said.node, *no_placement, *_values(said, _ATTEMPT)]
        for said in attempts
    ]
    return Sheet("pod", POD, rows)


def _values(row: object, columns: Sequence[str]) -> list[object]:
    return [getattr(row, name) for name in columns]
