"""What was decided lately, for whoever keeps it: a bounded ring, read from a cursor.

Nothing is written out and nobody is waited for. A decision that repeats for the same reasons is
one entry that is counted; so a storm of waiting Pods is as many entries as Pods. What a refusal is
made of is worked out when it is read first, from the immutable records of its moment.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Raw, Struct

from hami_web.core.reservation import Reservation
from hami_web.scheduling.events import Regarding
from hami_web.scheduling.explained import NearestFinder, explain, shortened
from hami_web.scheduling.holds import Hold
from hami_web.scheduling.refusal import Refused

NOTHING: Final = b"null"


class Outcome(StrEnum):
    """What a call of kube-scheduler ended in; the value is the stable code."""

    HELD = "held"
    """``/filter`` chose a node and holds devices there."""
    REFUSED = "refused"
    """No node takes the Pod now."""
    INVALID = "invalid"
    """``/filter`` could not be answered: what the Pod asks for is wrong."""
    BOUND = "bound"
    BIND_FAILED = "bind_failed"


@dataclass(frozen=True, slots=True)
class LogLimits:
    """Bounds: entries kept, bytes of explanations kept, refusals kept that nobody has read yet,
    seconds for which an explanation is good, and seconds of work on explanations for one reader.
    """

    entries: int = 4096
    explained_bytes: int = 16 * 1024 * 1024
    unread: int = 256
    refresh_s: float = 60.0
    explain_s: float = 0.1


class HeldDevice(Struct, frozen=True):
    """One device that is held for a container; ``start`` and ``size`` in memory slices."""

    container_index: int
    device_index: int
    gpu_uuid: str
    profile: str
    start: int
    size: int


class Decision(Struct, frozen=True):
    """One entry. ``first`` and ``last`` are Unix time in seconds; ``code`` names an error.

    ``explanation`` is the JSON of an :class:`~hami_web.scheduling.explained.Explanation`; null
    where no node was refused, or too many Pods were to explain each. ``held`` are the devices that
    ``/filter`` held, as the last time. An entry that repeats keeps its ``id``.
    """

    id: str
    outcome: Outcome
    pod: Regarding
    node: str | None
    code: str | None
    message: str
    first: float
    last: float
    count: int
    held: tuple[HeldDevice, ...]
    explanation: Raw


class DecisionPage(Struct, frozen=True):
    """Entries that are new or were counted since a cursor, oldest first.

    ``reset``: entries between the cursor and this page are lost, or the cursor is another
    process's. ``more``: there are further ones already.
    """

    cursor: str
    reset: bool
    more: bool
    decisions: tuple[Decision, ...]


@dataclass(slots=True)
class _Entry:
    number: int
    outcome: Outcome
    pod: Regarding
    message: str
    first: float
    last: float
    node: str | None = None
    code: str | None = None
    held: tuple[Reservation, ...] = ()
    count: int = 1
    at: int = 0
    refused: Refused | None = None
    refused_at: float = float("-inf")
    explanation: bytes = NOTHING


_Key = tuple[str, Outcome, str]


class DecisionLog:
    """The ring; safe for threads. ``clock`` gives Unix time, ``timer`` monotonic time, both in
    seconds. ``dropped`` counts entries that left before anyone read them.
    """

    def __init__(
        self,
        limits: LogLimits | None = None,
        *,
        clock: Callable[[], float] = time.time,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self.dropped = 0
        self._limits = limits or LogLimits()
        self._clock = clock
        self._timer = timer
        self._run = secrets.token_hex(4)
        self._finder = NearestFinder(timer)
        self._lock = threading.Lock()
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()
        self._unread: OrderedDict[_Key, None] = OrderedDict()
        self._numbers = 0
        self._moves = 0
        self._lost_up_to = 0
        self._read_up_to = 0
        self._explained_bytes = 0

    def add(
        self,
        outcome: Outcome,
        pod: Regarding,
        message: str,
        *,
        node: str | None = None,
        code: str | None = None,
        refused: Refused | None = None,
    ) -> None:
        """Note a decision; the same again is counted. Costs microseconds, never waits."""
        key = (pod.uid, outcome, shortened(message))
        with self._lock:
            entry = self._noted(key, pod)
            entry.node, entry.code = node, code
            if refused is not None and entry.last - entry.refused_at >= self._limits.refresh_s:
                self._keep(key, entry, refused, entry.last)
            self._shrink()

    def add_hold(self, pod: Regarding, message: str, hold: Hold) -> None:
        """Note that devices are held for a Pod, and which."""
        with self._lock:
            entry = self._noted((pod.uid, Outcome.HELD, shortened(message)), pod)
            entry.node, entry.held = hold.node, hold.reservations
            self._shrink()

    def since(self, cursor: str = "", limit: int = 200) -> DecisionPage:
        """At most ``limit`` entries after a cursor; the empty one means from the beginning."""
        run, _, text = cursor.partition("-")
        ours = run == self._run and text.isascii() and text.isdigit()
        after = int(text) if ours else 0
        with self._lock:
            lost = bool(cursor) and (not ours or after < self._lost_up_to)
            found = self._after(after)
        page = self._explained(found[:limit])
        end = page[-1][0] if page else max(after, self._lost_up_to)
        with self._lock:
            self._read_up_to = max(self._read_up_to, end)
        return DecisionPage(
            f"{self._run}-{end}", lost, len(page) < len(found), tuple(item for _, item in page)
        )

    def __len__(self) -> int:
        return len(self._entries)

    def _noted(self, key: _Key, pod: Regarding) -> _Entry:
        now = self._clock()
        self._moves += 1
        entry = self._entries.get(key)
        if entry is None:
            self._numbers += 1
            _, outcome, message = key
            entry = _Entry(self._numbers, outcome, pod, message, now, now)
            self._entries[key] = entry
        else:
            entry.count += 1
            entry.last = now
            self._entries.move_to_end(key)
        entry.at = self._moves
        return entry

    def _after(self, after: int) -> list[tuple[_Key, int]]:
        found = []
        for key in reversed(self._entries):
            entry = self._entries[key]
            if entry.at <= after:
                break
            found.append((key, entry.at))
        return found[::-1]

    def _keep(self, key: _Key, entry: _Entry, refused: Refused, now: float) -> None:
        """Keep a refusal to explain it later; beyond the bound the oldest stays unexplained."""
        entry.refused, entry.refused_at = refused, now
        self._unread[key] = None
        self._unread.move_to_end(key)
        if len(self._unread) > self._limits.unread:
            oldest, _ = self._unread.popitem(last=False)
            self._entries[oldest].refused = None
            self._entries[oldest].refused_at = float("-inf")

    def _shrink(self) -> None:
        limits = self._limits
        while len(self._entries) > limits.entries or self._explained_bytes > limits.explained_bytes:
            key, entry = self._entries.popitem(last=False)
            self._unread.pop(key, None)
            self._explained_bytes -= len(entry.explanation)
            self._lost_up_to = entry.at
            if entry.at > self._read_up_to:
                self.dropped += 1

    def _explained(self, keys: list[tuple[_Key, int]]) -> list[tuple[int, Decision]]:
        """Explain entries outside the lock; at least one, then as many as the time allows."""
        until = self._timer() + self._limits.explain_s
        page: list[tuple[int, Decision]] = []
        for key, at in keys:
            if page and self._timer() > until:
                break
            with self._lock:
                entry = self._entries.get(key)
                refused = None if entry is None else entry.refused
            if refused is not None:
                self._explain(key, refused)
            with self._lock:
                entry = self._entries.get(key)
                if entry is not None:
                    page.append((at, self._decision(entry)))
        return page

    def _explain(self, key: _Key, refused: Refused) -> None:
        found = explain(refused, self._finder.find(refused))
        explanation = msgspec.json.encode(found)
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return
            if entry.refused is refused:
                entry.refused = None
                self._unread.pop(key, None)
                if not found.nearest_known:
                    entry.refused_at = float("-inf")  # the next repetition gets another try
            self._explained_bytes += len(explanation) - len(entry.explanation)
            entry.explanation = explanation
            self._shrink()

    def _decision(self, entry: _Entry) -> Decision:
        return Decision(
            f"{self._run}-{entry.number}",
            entry.outcome,
            entry.pod,
            entry.node,
            entry.code,
            entry.message,
            entry.first,
            entry.last,
            entry.count,
            tuple(_held(item) for item in entry.held),
            Raw(entry.explanation),
        )


def _held(item: Reservation) -> HeldDevice:
    place = item.placement
    return HeldDevice(*item.key, item.gpu_uuid, item.profile, start=place.start, size=place.size)
