"""Reads of reservations: now, at a moment, and over a range of time."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from django.db.models import Case, CharField, Q, QuerySet, Value, When

from hami_web.reservations.models import LIVE, NEVER_BOUND, MigReservation, Phase


def live_by_gpu() -> dict[str, list[MigReservation]]:
    """Live reservations by UUID of their GPU, in order of placement; one query."""
    found: defaultdict[str, list[MigReservation]] = defaultdict(list)
    for row in MigReservation.objects.filter(LIVE).order_by("gpu_uuid", "start", "id"):
        found[row.gpu_uuid].append(row)
    return dict(found)


def as_of(rows: QuerySet[MigReservation], moment: datetime) -> QuerySet[MigReservation]:
    """Those that were there at a moment, each with ``phase_then``.

    That reservations overlapped is not remembered: what was in conflict then is not told.
    """
    then = Case(
        When(terminating_at__lte=moment, then=Value(Phase.TERMINATING.value)),
        When(realized_at__lte=moment, then=Value(Phase.REALIZED.value)),
        When(phase__in=NEVER_BOUND, then=Value(Phase.HELD.value)),
        default=Value(Phase.RESERVED.value),
        output_field=CharField(),
    )
    return rows.filter(there_at(moment)).annotate(phase_then=then)


def there_at(moment: datetime) -> Q:
    """The condition of having been there at a moment, over since or not."""
    return (LIVE | Q(released_at__gt=moment)) & Q(reserved_at__lte=moment)
