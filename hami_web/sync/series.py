"""The mirror's metrics, all from its database: any worker gives the same answer."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from django.db import DatabaseError
from django.db.models import Count

from hami_web.core.trouble import Trouble
from hami_web.history import tallies
from hami_web.history.conditions import AlertCode
from hami_web.history.drift import CORRECTIONS, feed_caught_up_at
from hami_web.history.models import Alert
from hami_web.inventory.models import LIVE as PRESENT
from hami_web.inventory.models import Gpu, Node
from hami_web.metrics import table
from hami_web.metrics.series import Family, single
from hami_web.reservations.models import LIVE, MigReservation
from hami_web.scheduling.measures import BUCKETS_S, DurationCounts
from hami_web.sync import measuring

logger = logging.getLogger(__name__)


class MirrorCollector:
    """Six queries for each scrape; without a database only that it does not answer."""

    def __init__(self) -> None:
        self._trouble = Trouble(logger, "the mirror cannot be measured: %s")

    def collect(self) -> Iterator[Family]:
        """What the database says."""
        try:
            families = list(_families())
        except DatabaseError as error:
            self._trouble.tell(error)
            yield single(table.MIRROR_UP, 0)
            return
        self._trouble.over()
        yield single(table.MIRROR_UP, 1)
        yield from families


def _families() -> Iterator[Family]:
    reached = feed_caught_up_at()
    if reached is not None:
        behind_s = (datetime.now(UTC) - reached).total_seconds()
        yield single(table.MIRROR_LAG, max(behind_s, 0.0))
    rows = Family(table.MIRROR_ROWS)
    rows.add(Gpu.objects.filter(PRESENT).count(), "gpu")
    rows.add(Node.objects.filter(PRESENT).count(), "node")
    rows.add(MigReservation.objects.filter(LIVE).count(), "reservation")
    yield rows
    yield _alerts()
    yield from _tallied(tallies.all_tallies())


def _alerts() -> Family:
    counted = Alert.objects.filter(resolved_at=None).order_by().values_list("code")
    found = dict.fromkeys((code.value for code in AlertCode), 0)
    found.update(counted.annotate(Count("id")))
    return Family(table.ALERTS, [((code,), number) for code, number in sorted(found.items())])


def _tallied(found: Mapping[tallies.Key, float]) -> Iterator[Family]:
    plain = {
        CORRECTIONS: Family(table.CORRECTIONS),
        measuring.TASKS: Family(table.TASKS),
        measuring.SUCCEEDED_AT: Family(table.TASK_SUCCESS),
        measuring.SKIPPED: Family(table.SKIPPED),
    }
    seconds: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for (name, *labels), value in sorted(found.items()):
        if name in plain:
            plain[name].add(value, *labels)
        elif name == measuring.SECONDS:
            task, bucket = labels
            seconds[task][bucket] = value
    yield from plain.values()
    durations = Family(table.TASK_DURATION)
    durations.durations.extend(((task,), _counts(values)) for task, values in seconds.items())
    yield durations


def _counts(values: Mapping[str, float]) -> DurationCounts:
    counts = (int(values.get(str(bucket), 0)) for bucket in range(len(BUCKETS_S) + 1))
    return DurationCounts(tuple(counts), values.get(measuring.SUM, 0.0))
