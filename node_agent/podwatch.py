"""Watches the node's Pods, to wake the reclaimer in the moment that matters; it decides nothing.

That is when a Pod ends, and when one of a program that may change the MIG layout comes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from hami_web.core.errors import InvalidField
from hami_web.core.mig_owner import sign_of_program
from hami_web.core.trouble import Trouble
from node_agent.cluster import Cluster, Stream
from node_agent.decoding import PodEvent, pod_event
from node_agent.errors import ClusterError

logger = logging.getLogger(__name__)

_BACKOFF_FIRST_SECONDS: Final = 0.2
_BACKOFF_MOST_SECONDS: Final = 10.0


class PodWatch:
    """List, then watch, again and again; whatever it misses, the periodic pass finds."""

    def __init__(self, cluster: Cluster, ended: Callable[[], None]) -> None:
        self._cluster = cluster
        self._ended = ended
        self._mutex = threading.Lock()
        self._stream: Stream | None = None
        self._stopping = False

    def run(self, stop: threading.Event) -> None:
        """Follow the Pods until told to stop."""
        wait = _BACKOFF_FIRST_SECONDS
        trouble = Trouble(logger, "the watch of Pods starts again: %s")
        while not stop.is_set():
            try:
                self._follow()
                wait = _BACKOFF_FIRST_SECONDS
                trouble.over()
            except (ClusterError, InvalidField) as error:
                if not stop.is_set():
                    trouble.tell(error)
                wait = min(wait * 2, _BACKOFF_MOST_SECONDS)
            stop.wait(wait)

    def end(self) -> None:
        """Make the running watch finish; no other is opened."""
        with self._mutex:
            self._stopping = True
            if self._stream is not None:
                self._stream.end()

    def _follow(self) -> None:
        version = self._cluster.pods().resource_version
        stream = self._cluster.watch_pods(version)
        with self._mutex:
            self._stream = stream
            if self._stopping:
                stream.end()
        # What ended between the last pass and this list has no event any more.
        self._ended()
        for line in stream.lines():
            event = pod_event(line)
            if event.kind == "ERROR":
                return
            if _matters(event):
                self._ended()


def _matters(event: PodEvent) -> bool:
    pod = event.pod
    if pod is None:
        return False
    came = event.kind == "ADDED" and sign_of_program(pod.key, pod.labels) is not None
    return came or event.kind == "DELETED" or pod.over
