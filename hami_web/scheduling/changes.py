"""Who wants to hear that the state changed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

logger = logging.getLogger(__name__)


class Subscribers:
    """Callbacks with the last version each was told; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: tuple[Callable[[int], None], ...] = ()
        self._told = 0

    def add(self, callback: Callable[[int], None]) -> Callable[[], None]:
        """Add a callback; returns the way to remove it, which may be called twice."""

        def call(version: int) -> None:  # of its own, so that one callback may be added twice
            callback(version)

        def remove() -> None:
            with self._lock:
                self._callbacks = tuple(kept for kept in self._callbacks if kept is not call)

        with self._lock:
            self._callbacks = (*self._callbacks, call)
        return remove

    def tell(self, version: int) -> None:
        """Tell everyone of a version not told before."""
        if version == self._told:
            return
        with self._lock:
            if version <= self._told:
                return
            self._told = version
            callbacks = self._callbacks
        for callback in callbacks:
            try:
                callback(version)
            except Exception:  # one listener must not stop the watch or the others
                logger.exception("A listener of the cluster state failed.")
