"""Reads of reservations: now, at a moment, and over a range of time."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from django.db.models import Q

from hami_web.reservations.models import LIVE, MigReservation


def live_by_gpu() -> dict[str, list[MigReservation]]:
    """Live reservations by UUID of their GPU, in order of placement; one query."""
    found: defaultdict[str, list[MigReservation]] = defaultdict(list)
    for row in MigReservation.objects.filter(LIVE).order_by("gpu_uuid", "start", "id"):
        found[row.gpu_uuid].append(row)
    return dict(found)


def there_at(moment: datetime) -> Q:
    """The condition of having been there at a moment, over since or not."""
    return (LIVE | Q(released_at__gt=moment)) & Q(reserved_at__lte=moment)
