"""Counts of durations, kept without a metrics library: the metrics edge reads them."""

from __future__ import annotations

import threading
from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

BUCKETS_S: Final = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DurationCounts:
    """Counts per bucket (the last is everything above), and the sum in seconds."""

    counts: tuple[int, ...]
    total_s: float


class Durations:
    """A histogram of seconds; safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = [0] * (len(BUCKETS_S) + 1)
        self._total_s = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        position = bisect_left(BUCKETS_S, seconds)
        with self._lock:
            self._counts[position] += 1
            self._total_s += seconds

    def snapshot(self) -> DurationCounts:
        """Counts as they are now."""
        with self._lock:
            return DurationCounts(tuple(self._counts), self._total_s)
