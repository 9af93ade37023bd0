"""Actions in order of their time, one after the other on one thread."""

from __future__ import annotations

import heapq
import http.client
import itertools
import logging
import threading
import time
from collections.abc import Callable

from hami_web.simulator.client import ApiError

logger = logging.getLogger(__name__)

Action = Callable[[], None]
_RETRY_AFTER = 0.1


class Timeline:
    """Runs actions; one that fails on the API is tried again a moment later, until it succeeds."""

    def __init__(self, name: str) -> None:
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, Action]] = []
        self._numbers = itertools.count()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Drop what has not begun and wait for what has."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def schedule(self, action: Action, delay: float = 0.0) -> None:
        """Run ``action`` in ``delay`` seconds, after everything that is due earlier."""
        with self._changed:
            heapq.heappush(self._due, (time.monotonic() + delay, next(self._numbers), action))
            self._changed.notify_all()

    def _next(self) -> Action | None:
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                if self._due and self._due[0][0] <= now:
                    return heapq.heappop(self._due)[2]
                self._changed.wait(self._due[0][0] - now if self._due else None)
            return None

    def _run(self) -> None:
        while (action := self._next()) is not None:
            try:
                action()
            except (ApiError, OSError, http.client.HTTPException) as error:
                logger.info("tried again in %s s: %s", _RETRY_AFTER, error)
                self.schedule(action, _RETRY_AFTER)
            except Exception:
                logger.exception("an action failed for good")
