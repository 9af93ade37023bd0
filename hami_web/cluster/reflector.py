"""List-and-watch of one kind into a sink, for ever: pages, bookmarks, 410, back-off, age.

A sink sees a complete list in one step, then single changes; a name that comes back with another
UID is a removal and an addition. Pages are handed on as they arrive, so that a large list is never
in memory at once, unless the sink keeps it. The official informer is not used: it has no read
timeout, no paging, no back-off and no bookmarks, and decodes every field.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from hami_web.cluster.errors import (
    ClusterError,
    Expired,
    Forbidden,
    TooManyRequests,
    Unauthorized,
)
from hami_web.cluster.listing import Listing, ListingStopped, Uids
from hami_web.cluster.ports import (
    Bookmark,
    Changed,
    ObjectSink,
    ObjectSource,
    Removed,
    T,
    WatchStream,
)
from hami_web.cluster.views import ObjectMeta
from hami_web.core.faults import Fault, line

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Timing:
    """Bounds in seconds; the watch timeout is random so that watches do not end together."""

    page_size: int = 500
    watch_least_s: int = 240
    watch_most_s: int = 300
    relist_after_s: float = 600.0
    backoff_first_s: float = 0.5
    backoff_most_s: float = 30.0
    healthy_after_s: float = 60.0


class Reflector(Generic[T]):
    """One thread that keeps a sink equal to the API server's collection.

    ``synced`` is set by the first complete list; ``problem`` is the newest failure as a line, empty
    while the API server answers. ``clock`` is monotonic, in seconds.
    """

    def __init__(
        self,
        name: str,
        source: ObjectSource[T],
        sink: ObjectSink[T],
        *,
        timing: Timing | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.synced = threading.Event()
        self.relists = 0
        self.failures = 0
        self.problem = ""
        self._source = source
        self._sink = sink
        self._timing = timing or Timing()
        self._clock = clock
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._stream: WatchStream[T] | None = None
        self._uids = Uids()
        self._version = ""
        self._listed_at: float | None = None
        self._list_began_at: float | None = None
        self._relists_asked = 0
        self._relists_done = 0
        self._poked = threading.Event()
        self._heard_at: float | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin in a thread of its own."""
        self._thread = threading.Thread(target=self._run, name=f"watch-{self.name}", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """End promptly, also out of a blocked read."""
        self._stopped.set()
        self._poked.set()
        with self._lock:
            stream = self._stream
        if stream is not None:
            stream.close()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def relist(self) -> None:
        """List anew now, whatever the watch says; returns at once."""
        with self._lock:
            self._relists_asked += 1
            stream = self._stream
        self._poked.set()
        if stream is not None:
            stream.close()

    def listed_since(self, moment: float) -> bool:
        """True when the last complete list began at ``moment`` on the clock, or later."""
        return self._list_began_at is not None and self._list_began_at >= moment

    def age_s(self) -> float | None:
        """Seconds since the API server was last heard (list, event, bookmark); None before."""
        return None if self._heard_at is None else self._clock() - self._heard_at

    def list_age_s(self) -> float | None:
        """Seconds since the last complete list; None before the first."""
        return None if self._listed_at is None else self._clock() - self._listed_at

    def _run(self) -> None:
        backoff = _Backoff(self._timing, self._clock)
        while not self._stopped.is_set():
            try:
                self._turn()
                delay = 0.0 if self._must_list() else backoff.after_success()
            except Expired as error:
                logger.info("%s: list again: %s", self.name, error)
                self._version = ""
                delay = backoff.after_failure(None)
            except ClusterError as error:
                self.failures += 1
                delay = backoff.after_failure(error)
                self._complain(error)
            except Exception:
                # A sink that fails would leave a hole in what it knows: start from a list.
                self.failures += 1
                self._version = ""
                delay = backoff.after_failure(None)
                logger.exception("%s: again in %.1f s", self.name, delay)
            self._poked.wait(delay)
            self._poked.clear()

    def _complain(self, error: ClusterError) -> None:
        """Say it once: a cause that stays is tried again for hours."""
        refused = isinstance(error, Forbidden | Unauthorized)
        problem = line(Fault.API_SERVER_FORBIDS if refused else Fault.API_SERVER, error)
        if problem != self.problem:
            logger.warning("%s: %s; tried again until it works", self.name, problem)
        self.problem = problem

    def _answered(self) -> None:
        if self.problem:
            logger.info("%s: the API server answers again", self.name)
        self.problem = ""

    def _turn(self) -> None:
        """List if needed, then watch once."""
        if self._must_list() and not self._list():
            return
        self._watch()

    def _must_list(self) -> bool:
        age = self.list_age_s()
        asked = self._relists_asked != self._relists_done or not self._version
        return asked or age is None or age > self._timing.relist_after_s

    def _list(self) -> bool:
        """List once; False when the reflector was stopped meanwhile."""
        asked = self._relists_asked
        began = self._clock()
        listing = Listing(self._source, self._timing.page_size, self._stopped)
        try:
            self._sink.replace(listing, listed_at=began)
        except ListingStopped:
            return False
        self._version = listing.version()
        self._uids = listing.uids.sharing(self._uids)
        self._list_began_at = began
        self._relists_done = asked
        self._listed_at = self._heard_at = self._clock()
        self.relists += 1
        self._answered()
        self.synced.set()
        return True

    def _watch(self) -> None:
        timing = self._timing
        # Not a secret: spreads the ends of watches over time.
        timeout_s = random.randint(timing.watch_least_s, timing.watch_most_s)  # noqa: S311
        stream = self._source.watch(resource_version=self._version, timeout_s=timeout_s)
        with self._lock:
            self._stream = stream
        self._heard_at = self._clock()
        self._answered()
        try:
            if self._stopped.is_set() or self._relists_asked != self._relists_done:
                return
            for event in stream:
                self._take(event)
                if self._stopped.is_set():
                    return
        finally:
            with self._lock:
                self._stream = None
            stream.close()

    def _take(self, event: Changed[T] | Removed | Bookmark) -> None:
        match event:
            case Bookmark(version):
                self._version = version
            case Removed(metadata):
                self._remove(metadata)
            case Changed(item):
                self._put(item)
        self._heard_at = self._clock()

    def _put(self, item: T) -> None:
        metadata = item.metadata
        known = self._uids.get(metadata)
        if known is not None and known != metadata.uid:
            gone = ObjectMeta(name=metadata.name, namespace=metadata.namespace, uid=known)
            self._sink.remove(gone)
        self._sink.put(item)
        self._uids.set(metadata)
        self._version = metadata.resource_version

    def _remove(self, metadata: ObjectMeta) -> None:
        known = self._uids.get(metadata)
        if known in (None, metadata.uid):
            self._uids.remove(metadata)
            self._sink.remove(metadata)
        # else: an old UID was already replaced by a newer object of that name
        self._version = metadata.resource_version


class _Backoff:
    """Exponential delay with jitter; a minute of health starts it afresh."""

    def __init__(self, timing: Timing, clock: Callable[[], float]) -> None:
        self._timing = timing
        self._clock = clock
        self._failures = 0
        self._turn_began = clock()

    def after_success(self) -> float:
        """A watch that ended as announced: go on at once, unless it ended at once."""
        if self._was_healthy():
            self._failures = 0
            return 0.0
        return self._timing.backoff_first_s

    def after_failure(self, error: ClusterError | None) -> float:
        if self._was_healthy():
            self._failures = 0
        ceiling = min(
            self._timing.backoff_most_s, self._timing.backoff_first_s * 2.0**self._failures
        )
        self._failures = min(self._failures + 1, 16)
        delay = ceiling * random.uniform(0.5, 1.0)  # noqa: S311  # jitter, no secret
        if isinstance(error, TooManyRequests):
            delay = max(delay, error.retry_after_s)
        return delay

    def _was_healthy(self) -> bool:
        now = self._clock()
        began, self._turn_began = self._turn_began, now
        return now - began >= self._timing.healthy_after_s
