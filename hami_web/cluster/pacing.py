"""How many API calls may be sent in a second, and who goes first.

A bucket of tokens. Housekeeping (events, waking Pods) leaves half of the bucket to binds, so that a
burst of it never delays them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import IntEnum


class Priority(IntEnum):
    """What a call is for."""

    URGENT = 0
    """Binds, node locks, leadership, lists and watches."""
    HOUSEKEEPING = 1
    """What may wait for seconds."""


class Pace:
    """Tokens that refill at ``per_second`` up to ``burst``; safe for threads.

    ``waited_s`` is how long callers waited altogether, for the metrics.
    """

    def __init__(
        self,
        per_second: float,
        burst: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.waited_s = 0.0
        self._per_second = per_second
        self._burst = float(max(burst, 2))
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._tokens = self._burst
        self._filled_at = clock()

    def take(self, priority: Priority) -> None:
        """Return when a call may be sent."""
        while (wait_s := self._try(priority)) > 0:
            self._sleep(wait_s)

    def _try(self, priority: Priority) -> float:
        """Take a token, or say how long to wait before looking again."""
        floor = self._burst / 2 if priority is Priority.HOUSEKEEPING else 0.0
        with self._lock:
            now = self._clock()
            grown = (now - self._filled_at) * self._per_second
            self._tokens = min(self._burst, self._tokens + grown)
            self._filled_at = now
            if self._tokens - 1 >= floor:
                self._tokens -= 1
                return 0.0
            wait_s = max((floor + 1 - self._tokens) / self._per_second, 0.001)
            self.waited_s += wait_s
            return wait_s
