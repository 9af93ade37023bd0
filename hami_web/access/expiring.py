"""Answers that are true for a while."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ExpiringAnswers(Generic[K, V]):
    """At most ``size`` answers, each for its own number of seconds; safe for threads."""

    def __init__(self, size: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._size = size
        self._clock = clock
        self._lock = threading.Lock()
        self._answers: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K) -> tuple[V] | None:
        """The answer, in a tuple since it may be None itself; None where there is none."""
        with self._lock:
            found = self._answers.get(key)
            if found is None or found[0] <= self._clock():
                return None
            self._answers.move_to_end(key)
            return (found[1],)

    def put(self, key: K, answer: V, seconds: float) -> V:
        """Keep an answer and return it; the one used least is dropped for it."""
        with self._lock:
            self._answers[key] = (self._clock() + seconds, answer)
            self._answers.move_to_end(key)
            while len(self._answers) > self._size:
                self._answers.popitem(last=False)
        return answer

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._answers.clear()
