"""Binds of which it is not known yet whether they happened."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from hami_web.scheduling.binding import BindOrder

WRITE_MAY_COME_S: Final = 60.0
"""The API server's limit on one request: after it, nothing that was sent before is written."""


class Unsettled:
    """Open binds with the time of their last try; safe for threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._orders: dict[BindOrder, float] = {}

    def add(self, order: BindOrder) -> None:
        """Note that a try ended unclear."""
        with self._lock:
            self._orders[order] = self._clock()

    def forget(self, order: BindOrder) -> None:
        """It is clear now."""
        with self._lock:
            self._orders.pop(order, None)

    def open(self) -> list[tuple[BindOrder, bool]]:
        """What is open, and whether a write that was sent may still come through."""
        now = self._clock()
        with self._lock:
            return [(order, now - at < WRITE_MAY_COME_S) for order, at in self._orders.items()]

    def __len__(self) -> int:
        return len(self._orders)
