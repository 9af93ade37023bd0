"""How long whose instances were there."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from hami_web.reservations.models import LIVE, NEVER_BOUND, MigReservation

HOUR_S = 3600.0


@dataclass(slots=True)
class Usage:
    """Of one namespace and profile. ``gpu_hours`` weighs by the share of the GPU's memory slices;
    what lies on GPUs of unknown size counts only in ``instance_hours``.
    """

    namespace: str
    profile: str
    reservations: int = 0
    instance_hours: float = 0.0
    gpu_hours: float = 0.0


def usage_between(start: datetime, end: datetime, *, about: Q | None = None) -> list[Usage]:
    """What reservations had in ``[start, end)``, by namespace and profile; one query.

    ``about`` leaves only some of them: those of a namespace, a node, a GPU or a Pod.
    """
    rows = MigReservation.objects.filter(
        about or Q(),
        LIVE | Q(released_at__gt=start),
        ~Q(phase__in=NEVER_BOUND),
        reserved_at__lt=end,
    ).values_list(
        *("namespace", "profile", "size", "gpu_memory_slices", "reserved_at", "released_at")
    )
    found: defaultdict[tuple[str, str], Usage] = defaultdict(lambda: Usage("", ""))
    for namespace, profile, size, grid, reserved_at, released_at in rows.order_by().iterator():
        began, ended = max(start, reserved_at), min(end, released_at or end)
        hours = (ended - began).total_seconds() / HOUR_S
        entry = found[namespace, profile]
        entry.namespace, entry.profile = namespace, profile
        entry.reservations += 1
        entry.instance_hours += hours
        entry.gpu_hours += hours * size / grid if grid else 0.0
    return [entry for _, entry in sorted(found.items())]
