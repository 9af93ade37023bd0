"""Whether the worker's parts still work: each leaves a time, and who is alive looks at all."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from django.db import DatabaseError, close_old_connections, connection

from hami_web.core.trouble import Trouble
from hami_web.history.alerts import settle_alerts
from hami_web.history.conditions import AlertCode, Condition
from hami_web.history.drift import feed_caught_up_at
from hami_web.history.models import Alert, Heartbeat, Reconciliation
from hami_web.inventory.writing import writing

logger = logging.getLogger(__name__)

PULSE_S: Final = 15.0
"""How often beat asks the queue for a sign of life."""
QUEUE_SILENT_AFTER: Final = timedelta(minutes=2)
"""Longer than a long task may keep all threads of a worker from the next sign."""
FEED_SILENT_AFTER: Final = timedelta(minutes=3)
"""The feed writes every second, unless the API server is silent, which is normal for 90 s."""
TURNS_MISSED: Final = 5
"""So many comparisons may fail or not come."""
LOOK_S: Final = 15.0
EXTENDER: Final = "extender"
"""Not a part of the worker: whom the worker asks for decisions."""
WORKER: Final = frozenset({AlertCode.WORKER_SILENT})


class Part(StrEnum):
    """A part of the worker that leaves a time."""

    FEED = "feed"
    """Follows the cluster's watches."""
    QUEUE = "queue"
    """Beat sends tasks and the worker consumes them."""
    COMPARISON = "comparison"
    """Compares the mirror with complete lists."""


@dataclass(frozen=True, slots=True)
class Vital:
    """When a part last worked; None where it never did, which is no alarm."""

    part: Part
    at: datetime | None
    silent: bool

    def __str__(self) -> str:
        if self.at is None:
            return f"{self.part}: never seen"
        return f"{self.part}: {'silent since' if self.silent else 'at'} {self.at:%F %T} UTC"


def note_pulse(now: datetime) -> None:
    """A task of the queue was consumed."""
    with writing():
        Heartbeat.objects.update_or_create(name=Part.QUEUE.value, defaults={"at": now})


def note_extender(now: datetime) -> None:
    """The extender answered the worker."""
    with writing():
        Heartbeat.objects.update_or_create(name=EXTENDER, defaults={"at": now})


def extender_heard_at() -> datetime | None:
    """When the extender last answered the worker, to ``PULSE_S``; None where it never did."""
    return Heartbeat.objects.filter(name=EXTENDER).values_list("at", flat=True).first()


def vitals(now: datetime, *, compare_every_s: float) -> tuple[Vital, ...]:
    """How every part is; three queries."""
    queue = Heartbeat.objects.filter(name=Part.QUEUE.value).values_list("at", flat=True).first()
    compared = Reconciliation.objects.values_list("finished_at", flat=True).first()
    found = (
        (Part.FEED, feed_caught_up_at(), FEED_SILENT_AFTER),
        (Part.QUEUE, queue, QUEUE_SILENT_AFTER),
        (Part.COMPARISON, compared, timedelta(seconds=TURNS_MISSED * compare_every_s + 60)),
    )
    return tuple(
        Vital(part, at, silent=at is not None and now - at > patience)
        for part, at, patience in found
    )


def refresh_vitals(now: datetime, *, compare_every_s: float) -> tuple[Vital, ...]:
    """Raise or resolve the alerts about silent parts; writes only where there is one."""
    found = vitals(now, compare_every_s=compare_every_s)
    silent = [vital for vital in found if vital.silent]
    if silent or Alert.objects.filter(code__in=WORKER, resolved_at=None).exists():
        with writing():
            settle_alerts(_conditions(silent), WORKER, now=now)
    return found


def _conditions(silent: Iterable[Vital]) -> Iterable[Condition]:
    for vital in silent:
        yield Condition(AlertCode.WORKER_SILENT, vital.part.value, f"worker's {vital}")


class VitalsWatch:
    """A thread that looks at the worker's parts from another place than they run in."""

    def __init__(self, *, compare_every_s: float, every_s: float = LOOK_S) -> None:
        self._compare_every_s = compare_every_s
        self._every_s = every_s
        self._silent: tuple[Vital, ...] = ()
        self._trouble = Trouble(logger, "the worker's signs of life cannot be read: %s")
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="vitals", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(5)

    def notices(self) -> list[str]:
        """What was silent at the last look, in words."""
        return [f"the worker's {vital}" for vital in self._silent]

    def _run(self) -> None:
        while not self._stopped.wait(self._every_s):
            try:
                close_old_connections()
                now = datetime.now(UTC)
                found = refresh_vitals(now, compare_every_s=self._compare_every_s)
                self._silent = tuple(vital for vital in found if vital.silent)
                self._trouble.over()
            except DatabaseError as error:
                self._trouble.tell(error)
            except Exception:
                logger.exception("looking for the worker's signs of life")
        connection.close()
