"""Reads of reservations: now, at a moment, and over a range of time."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from django.db.models import Q, QuerySet

from hami_web.reservations.models import LIVE, MigReservation


def live_by_gpu() -> dict[str, list[MigReservation]]:
    """Live reservations by UUID of their GPU, in order of placement; one query."""
    found: defaultdict[str, list[MigReservation]] = defaultdict(list)
    for row in MigReservation.objects.filter(LIVE).order_by("gpu_uuid", "start", "id"):
        found[row.gpu_uuid].append(row)
    return dict(found)


def at(moment: datetime) -> QuerySet[MigReservation]:
    """The reservations that were there at a moment, over since or not."""
    return MigReservation.objects.filter(LIVE | Q(released_at__gt=moment), reserved_at__lte=moment)
