"""Events on Pods: one per Pod, reason and text, counted in its series, never a flood.

Written by a thread of its own through a bounded queue; what does not fit is dropped and counted.
``events.k8s.io/v1``, with HAMi's reasons.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from hami_web.cluster.errors import ClusterError, NotFound
from hami_web.cluster.ports import EventDocument, EventWriter

logger = logging.getLogger(__name__)

CONTROLLER: Final = "hami.io/scheduler"
NOTE_MAX: Final = 1024
"""Bytes that the API server accepts in a note."""


class EventReason(StrEnum):
    """HAMi's words, and ours for reservations that are wrong."""

    FILTERING_FAILED = "FilteringFailed"
    FILTERING_SUCCEED = "FilteringSucceed"
    BINDING_FAILED = "BindingFailed"
    BINDING_SUCCEED = "BindingSucceed"
    RESERVATION_MALFORMED = "ReservationMalformed"
    RESERVATION_CONFLICT = "ReservationConflict"
    RESERVATION_ALTERED = "ReservationAltered"
    RESERVATION_UNTRUSTED = "ReservationUntrusted"


_ACTIONS: Final = {
    EventReason.FILTERING_FAILED: "Filter",
    EventReason.FILTERING_SUCCEED: "Filter",
    EventReason.BINDING_FAILED: "Bind",
    EventReason.BINDING_SUCCEED: "Bind",
    EventReason.RESERVATION_MALFORMED: "Observe",
    EventReason.RESERVATION_CONFLICT: "Observe",
    EventReason.RESERVATION_ALTERED: "Observe",
    EventReason.RESERVATION_UNTRUSTED: "Observe",
}
_NORMAL: Final = frozenset({EventReason.FILTERING_SUCCEED, EventReason.BINDING_SUCCEED})


@dataclass(frozen=True, slots=True)
class EventLimits:
    """Bounds: series kept, new events waiting, writes in a second, and seconds between two
    updates of one series.
    """

    series: int = 4096
    waiting: int = 1000
    per_second: float = 20.0
    repeat_every_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Regarding:
    """The Pod an event is about."""

    namespace: str
    name: str
    uid: str


@dataclass(slots=True)
class _Series:
    pod: Regarding
    reason: EventReason
    note: str
    name: str
    first: datetime
    last: datetime
    count: int = 1
    written_count: int = 0
    written_at: float = float("-inf")


_Key = tuple[str, EventReason, str]


class EventRecorder:
    """Records events from any thread; writes them on its own, from ``start`` to ``stop``.

    ``instance`` names this process. ``written``, ``failed`` and ``dropped`` are counts.
    """

    def __init__(
        self,
        writer: EventWriter,
        instance: str,
        *,
        limits: EventLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.written = 0
        self.failed = 0
        self.dropped = 0
        self._writer = writer
        self._instance = instance
        self._limits = limits or EventLimits()
        self._clock = clock
        self._lock = threading.Lock()
        self._series: OrderedDict[_Key, _Series] = OrderedDict()
        self._dirty: OrderedDict[_Key, None] = OrderedDict()
        self._work = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """End; what is not written yet is lost."""
        self._stopped.set()
        self._work.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def record(self, pod: Regarding, reason: EventReason, note: str) -> None:
        """Note that something happened to a Pod; the same again is counted. Never waits."""
        note = _shortened(note)
        key = (pod.uid, reason, note)
        now = datetime.now(UTC)
        with self._lock:
            series = self._series.get(key)
            if series is not None:
                series.count += 1
                series.last = now
                self._series.move_to_end(key)
            elif len(self._dirty) >= self._limits.waiting:
                self.dropped += 1
                return
            else:
                # As client-go names events: the moment is unique enough, and needs no system call.
                name = f"{pod.name[:200]}.{time.time_ns():x}"
                self._series[key] = _Series(pod, reason, note, name, now, now)
            self._dirty[key] = None
            self._forget_oldest()
        self._work.set()

    def _forget_oldest(self) -> None:
        while len(self._series) > self._limits.series:
            key, _ = self._series.popitem(last=False)
            self._dirty.pop(key, None)

    def _run(self) -> None:
        pause_s = 1.0 / self._limits.per_second
        while not self._stopped.is_set():
            try:
                wait_s = self._write_one()
            except Exception:
                logger.exception("writing an event")
                wait_s = 1.0
            if wait_s is None:
                self._stopped.wait(pause_s)
            elif self._work.wait(wait_s):
                # Whether there is more shows at the next look; a series that repeats waits there.
                self._work.clear()

    def _write_one(self) -> float | None:
        """Write what is due first; None after a write, else the seconds until one may be due."""
        found = self._next()
        if found is None:
            return self._limits.repeat_every_s
        key, series, due_s = found
        if due_s > 0:
            return due_s
        with self._lock:
            self._dirty.pop(key, None)
            count, last = series.count, series.last
            is_new = series.written_count == 0
        try:
            if is_new:
                self._writer.create_event(self._document(series, count, last))
            else:
                self._writer.patch_event(_series_patch(series, count, last))
        except NotFound:
            # Events expire: the series begins anew when it repeats.
            with self._lock:
                self._series.pop(key, None)
        except ClusterError as error:
            self.failed += 1
            logger.warning("event %s of Pod %s: %s", series.reason, series.pod.name, error)
        else:
            self.written += 1
        series.written_count = count
        series.written_at = self._clock()
        return None

    def _next(self) -> tuple[_Key, _Series, float] | None:
        """New events first, in order; then the repeated one that is due soonest."""
        now = self._clock()
        best: tuple[_Key, _Series, float] | None = None
        with self._lock:
            for key in self._dirty:
                series = self._series[key]
                due_s = series.written_at + self._limits.repeat_every_s - now
                if series.written_count == 0 or due_s <= 0:
                    return key, series, 0.0
                if best is None or due_s < best[2]:
                    best = (key, series, due_s)
        return best

    def _document(self, series: _Series, count: int, last: datetime) -> EventDocument:
        pod = series.pod
        document: dict[str, object] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": series.name, "namespace": pod.namespace},
            "eventTime": _micro(series.first),
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance[:128],
            "action": _ACTIONS[series.reason],
            "reason": str(series.reason),
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": pod.namespace,
                "name": pod.name,
                "uid": pod.uid,
            },
            "note": series.note,
            "type": "Normal" if series.reason in _NORMAL else "Warning",
        }
        if count > 1:
            document["series"] = _series(count, last)
        return EventDocument(pod.namespace, series.name, document)


def _series_patch(series: _Series, count: int, last: datetime) -> EventDocument:
    return EventDocument(series.pod.namespace, series.name, {"series": _series(count, last)})


def _series(count: int, last: datetime) -> dict[str, object]:
    return {"count": count, "lastObservedTime": _micro(last)}


def _micro(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _shortened(note: str) -> str:
    """At most NOTE_MAX bytes, cut between characters."""
    data = note.encode(errors="replace")
    if len(data) <= NOTE_MAX:
        return data.decode()
    return data[: NOTE_MAX - 3].decode(errors="ignore") + "…"
