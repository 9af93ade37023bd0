"""When this process last finished a task: a worker that only looks alive is found by it."""

from __future__ import annotations

import threading
import time

_lock = threading.Lock()
_last = [time.monotonic()]


def note() -> None:
    """A task was finished now."""
    with _lock:
        _last[0] = time.monotonic()


def age_s() -> float:
    """Seconds since a task was finished, or since the start."""
    with _lock:
        return time.monotonic() - _last[0]
