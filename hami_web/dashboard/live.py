"""The newest map of this process, and what changed in it since a version that a page has."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.freshness import Freshness

logger = logging.getLogger(__name__)

EVERYTHING: Final = "*"
"""In a list of changes: more than single GPUs changed, fetch the whole content."""
COALESCE_S: Final = 0.15
"""Changes that follow each other within this time are drawn once."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a page of an older version must fetch: GPU UUIDs, the word ``summary``, or ``*``."""

    version: int
    changed: tuple[str, ...]


class LiveMap:
    """Draws a new map when told that the cluster changed, in a thread of its own.

    ``draw`` returns the map for a version, or None while the cluster is not known. Versions grow
    over restarts too (they start at the clock's milliseconds), so a page never confuses two runs.
    """

    def __init__(
        self, draw: Callable[[int], ClusterMap | None], freshness: Callable[[], Freshness]
    ) -> None:
        self._draw = draw
        self.freshness = freshness
        self._lock = threading.Lock()
        self._map: ClusterMap | None = None
        self._since: dict[str, int] = {}
        self._oldest = 0
        self._dirty = threading.Event()
        self._closed = threading.Event()
        self._waiters: frozenset[_Waiter] = frozenset()
        self._thread = threading.Thread(target=self._run, name="live-map", daemon=True)

    def start(self) -> None:
        """Begin to draw."""
        self._dirty.set()
        self._thread.start()

    def close(self) -> None:
        """End the thread and every stream that waits. Safe in a signal handler."""
        self._closed.set()
        self._dirty.set()
        self._wake()

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    def mark_changed(self) -> None:
        """Something in the cluster changed; cheap, from any thread."""
        self._dirty.set()

    def current(self) -> ClusterMap | None:
        """The newest map; None before the first complete list of the cluster."""
        return self._map

    def changes_since(self, version: int) -> Change | None:
        """What changed after a version; None when nothing did."""
        with self._lock:
            newest = self._map.version if self._map else 0
            if version == newest:
                return None
            if version < self._oldest or version > newest:
                return Change(newest, (EVERYTHING,))
            names = sorted(name for name, since in self._since.items() if since > version)
            return Change(newest, tuple(names))

    async def wait_beyond(self, version: int, timeout_s: float) -> None:
        """Return when there is another version, the map is closed, or the time is over."""
        waiter = _Waiter(asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._waiters |= {waiter}
            if self.closed or (self._map and self._map.version != version):
                waiter.event.set()
        try:
            async with asyncio.timeout(timeout_s):
                await waiter.event.wait()
        except TimeoutError:
            return
        finally:
            with self._lock:
                self._waiters -= {waiter}

    def _run(self) -> None:
        while True:
            self._dirty.wait()
            self._dirty.clear()
            if self._closed.is_set():
                return
            try:
                self._redraw()
            except Exception:
                logger.exception("the cluster map could not be drawn; the old one stays")
            self._closed.wait(COALESCE_S)

    def _redraw(self) -> None:
        old = self._map
        version = max(time.time_ns() // 1_000_000, (old.version if old else 0) + 1)
        new = self._draw(version)
        if new is None:
            return
        changed = differences(old, new)
        if old is not None and not changed:
            return
        with self._lock:
            self._map = new
            self._since.update(dict.fromkeys(changed, new.version))
            if old is None or EVERYTHING in changed:
                self._oldest = new.version
                self._since.clear()
        self._wake()

    def _wake(self) -> None:
        # Without the lock: a signal handler may have interrupted its holder.
        for waiter in self._waiters:
            # A loop that has just been closed has nobody left to wake.
            with contextlib.suppress(RuntimeError):
                waiter.loop.call_soon_threadsafe(waiter.event.set)


@dataclass(frozen=True, eq=False)
class _Waiter:
    loop: asyncio.AbstractEventLoop
    event: asyncio.Event


def differences(old: ClusterMap | None, new: ClusterMap) -> list[str]:
    """What a page of the old map must fetch: GPU UUIDs, ``summary``, or ``*``."""
    if old is None or old.layout != new.layout:
        return [EVERYTHING]
    changed = [uuid for uuid, row in new.rows.items() if old.rows[uuid] != row]
    return changed if old.waiting == new.waiting else [*changed, "summary"]
