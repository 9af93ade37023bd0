"""Keeps one feed of the mirror going among all workers: this one's, or another's."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

from django.db import DatabaseError, close_old_connections, connection

from hami_web.cluster.reflector import Reflector
from hami_web.core.trouble import Trouble
from hami_web.history.tenure import FeedTenure, TenureLost
from hami_web.sync.feed import RETRY_S, Feed

logger = logging.getLogger(__name__)

WAIT_S: Final = 2.0
"""How often a worker that stands by looks whether the feed is free."""


class FeedKeeper:
    """From ``start`` to ``stop`` a thread that feeds the mirror whenever no other worker does.

    Each tenure begins with complete lists: what a feed knew that lost the mirror is worth nothing.
    """

    def __init__(self, make: Callable[[FeedTenure], Feed], began: Callable[[], object]) -> None:
        """``make`` builds a feed that has not started; ``began`` is called with each tenure."""
        self._make = make
        self._began = began
        self._tenure = FeedTenure()
        self._feed: Feed | None = None
        self._trouble = Trouble(logger, "the mirror cannot be reached: %s; again soon")
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mirror-feed", daemon=True)

    def start(self) -> None:
        """Begin to stand by."""
        self._thread.start()

    def stop(self) -> None:
        """End the feed and let another worker follow at once."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(10)

    def __iter__(self) -> Iterator[Reflector[Any]]:
        """The watches that run now; none while another worker feeds the mirror."""
        feed = self._feed
        return iter(feed.reflectors if feed is not None else ())

    def _run(self) -> None:
        pause_s = 0.0
        while not self._stopped.wait(pause_s):
            try:
                close_old_connections()
                pause_s = WAIT_S
                if self._tenure.take():
                    self._hold()
            except TenureLost:
                logger.warning("another worker feeds the mirror now")
            except DatabaseError as error:
                self._trouble.tell(error)
                pause_s = RETRY_S
            except Exception:
                logger.exception("the mirror's feed; again soon")
                pause_s = RETRY_S
        connection.close()

    def _hold(self) -> None:
        self._trouble.over()
        logger.info("this worker feeds the mirror, as %s", self._tenure.holder)
        # Beside the feed: a queue that hangs must not keep the mirror waiting.
        threading.Thread(target=self._began, name="feed-began", daemon=True).start()
        self._feed = self._make(self._tenure)
        try:
            self._feed.run(self._stopped)
        finally:
            self._feed = None
        self._tenure.release()
