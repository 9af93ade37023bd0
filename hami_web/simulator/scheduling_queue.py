"""The scheduler's queue: ready by priority and age, backing off, and waiting for a change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from hami_web.simulator.documents import JsonObject, key_of, metadata

Key = tuple[str, str]


@dataclass(slots=True)
class _Entry:
    """One Pod that waits. ``ready_at`` is monotonic; infinity means: until something changes."""

    pod: JsonObject
    ready_at: float
    order: tuple[int, str, int]


class SchedulingQueue:
    """Highest priority first, then oldest. Back-off doubles from ``first`` to ``longest`` seconds.

    As in kube-scheduler, a waiting Pod whose own object changes is tried at once, and a change of
    the cluster moves the waiting Pods on, those that still back off when their time has come.
    """

    def __init__(
        self,
        *,
        first: float = 1.0,
        longest: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._first = first
        self._longest = longest
        self._clock = clock
        self._changed = threading.Condition()
        self._entries: dict[Key, _Entry] = {}
        self._attempts: dict[Key, int] = {}
        self._backoff_until: dict[Key, float] = {}
        self._moves = 0
        self._sequence = 0
        self._closed = False

    @property
    def moves(self) -> int:
        """Counts changes of the cluster: a failure older than the last one is retried sooner."""
        return self._moves

    def add(self, pod: JsonObject) -> None:
        """A Pod that is new, or whose object changed in a way that may let it fit: try it now.

        One that backs off already keeps its time, as in kube-scheduler 1.20.
        """
        with self._changed:
            known = self._entries.get(key_of(pod))
            waits = known is None or known.ready_at == float("inf")
            self._insert(pod, 0.0 if waits or known is None else known.ready_at)

    def refresh(self, pod: JsonObject) -> None:
        """Keep a waiting Pod's newest object without trying it sooner."""
        with self._changed:
            entry = self._entries.get(key_of(pod))
            if entry is not None:
                entry.pod = pod

    def put_back(self, pod: JsonObject, moves: int, *, is_error: bool) -> None:
        """A Pod that did not fit waits for a change; one that met an error only backs off.

        ``moves`` is what :attr:`moves` was when its attempt began.
        """
        key = key_of(pod)
        with self._changed:
            attempts = self._attempts[key] = self._attempts.get(key, 0) + 1
            pause = min(self._longest, self._first * 2.0 ** min(attempts - 1, 30))
            until = self._backoff_until[key] = self._clock() + pause
            if key in self._entries:  # its object changed meanwhile: that retry comes first
                return
            waits = not is_error and moves == self._moves
            self._insert(pod, float("inf") if waits else until)

    def move_all(self) -> None:
        """The cluster changed: nobody waits longer than their back-off."""
        with self._changed:
            self._moves += 1
            for key, entry in self._entries.items():
                entry.ready_at = min(entry.ready_at, self._backoff_until.get(key, 0.0))
            self._changed.notify_all()

    def remove(self, key: Key) -> None:
        """The Pod is bound or gone."""
        with self._changed:
            self._entries.pop(key, None)
            self._attempts.pop(key, None)
            self._backoff_until.pop(key, None)

    def pop(self) -> JsonObject | None:
        """The next Pod to try, waiting for one; None once the queue is closed."""
        with self._changed:
            while not self._closed:
                pod = self.pop_ready()
                if pod is not None:
                    return pod
                soonest = min((e.ready_at for e in self._entries.values()), default=float("inf"))
                pause = None if soonest == float("inf") else max(0.0, soonest - self._clock())
                self._changed.wait(pause)
            return None

    def pop_ready(self) -> JsonObject | None:
        """The next Pod to try, or None when none is ready now."""
        with self._changed:
            now = self._clock()
            ready = [entry for entry in self._entries.values() if entry.ready_at <= now]
            if not ready:
                return None
            chosen = min(ready, key=lambda entry: entry.order)
            return self._entries.pop(key_of(chosen.pod)).pod

    def close(self) -> None:
        """Let :meth:`pop` return None."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def waiting(self) -> list[Key]:
        """Pods in the queue, ready or not."""
        with self._changed:
            return sorted(self._entries)

    def _insert(self, pod: JsonObject, ready_at: float) -> None:
        self._sequence += 1
        created = str(metadata(pod).get("creationTimestamp") or "")
        priority = int((pod.get("spec") or {}).get("priority") or 0)
        # creation times are whole seconds: the resource version of an unseen Pod breaks ties by age
        entry = _Entry(pod, ready_at, (-priority, created, self._sequence))
        known = self._entries.get(key_of(pod))
        if known is not None:
            entry.order = (-priority, created, known.order[2])
        self._entries[key_of(pod)] = entry
        self._changed.notify_all()
