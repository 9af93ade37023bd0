"""GPU-hours over the last days, for pages of namespaces, nodes, GPUs and Pods."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import DatabaseError
from django.db.models import Q

from hami_web.core.errors import InvalidField
from hami_web.reservations.usage import Usage, usage_between

logger = logging.getLogger(__name__)

DAYS: Final = ("1", "7", "30", "90")
"""Ranges that pages offer; what the worker forgot is not in them (``HAMI_HISTORY_DAYS``)."""

SHOWN_DAYS: Final = 7
"""Where a page offers no choice."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What was had in ``[since, until)``: rows of the usage API, and their sums in hours."""

    days: int
    since: datetime
    until: datetime
    rows: tuple[Usage, ...]

    @property
    def gpu_hours(self) -> float:
        return sum(row.gpu_hours for row in self.rows)

    @property
    def instance_hours(self) -> float:
        return sum(row.instance_hours for row in self.rows)


def parse_days(text: str) -> int:
    """The range of an address, in days. Raises InvalidField."""
    if text not in DAYS:
        raise InvalidField("days", text, ", ".join(DAYS))
    return int(text)


def spent(about: Q, now: datetime, days: int) -> Spent | None:
    """One query; None where the mirror cannot be read."""
    since = now - timedelta(days=days)
    try:
        return Spent(days, since, now, tuple(usage_between(since, now, about=about)))
    except DatabaseError as error:
        logger.warning("usage cannot be read: %s", error)
        return None


def by_namespace(rows: Iterable[Usage]) -> dict[str, float]:
    """GPU-hours of each namespace."""
    found: defaultdict[str, float] = defaultdict(float)
    for row in rows:
        found[row.namespace] += row.gpu_hours
    return dict(found)
