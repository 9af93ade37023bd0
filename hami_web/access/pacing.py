"""How often one caller or address may do something, in this process."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

KEYS_MAX: Final = 10_000


class TokenBuckets:
    """``per_minute`` for each key, as many at once; the least used keys are forgotten."""

    def __init__(self, per_minute: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._size = per_minute
        self._rate = per_minute / 60
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> float:
        """Seconds to wait, 0 where it may go on; only then one is taken."""
        return self._change(key, 1.0)

    def wait(self, key: str) -> float:
        """Seconds until one could be taken; takes none."""
        return self._change(key, 0.0)

    def _change(self, key: str, amount: float) -> float:
        now = self._clock()
        with self._lock:
            left, at = self._buckets.get(key, (self._size, now))
            left = min(self._size, left + (now - at) * self._rate)
            short = 1.0 - left
            if short > 0:
                amount = 0.0
            self._buckets[key] = (left - amount, now)
            self._buckets.move_to_end(key)
            if len(self._buckets) > KEYS_MAX:
                self._buckets.popitem(last=False)
        return short / self._rate if short > 0 else 0.0
