"""A reading of something that changes, kept for those who need not be more sure than that."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Latest(Generic[Value]):
    """Remembers the reading that was asked for last. ``clock`` is monotonic. Thread-safe."""

    def __init__(
        self, read: Callable[[], Value], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._clock = clock
        self._mutex = threading.Lock()
        self._kept: tuple[float, Value] | None = None

    def read(self) -> Value:
        """Read anew; raises what reading raises, and what was read before stays."""
        asked = self._clock()
        value = self._read()
        with self._mutex:
            # An answer that took long must not cover what was asked for after it.
            if self._kept is None or self._kept[0] <= asked:
                self._kept = (asked, value)
        return value

    def within(self, seconds: float) -> Value:
        """What was asked for at most so many seconds ago, read now if nothing was."""
        with self._mutex:
            kept = self._kept
        if kept is not None and self._clock() - kept[0] <= seconds:
            return kept[1]
        return self.read()
