"""Events on Pods: what took long or failed, where their users look for it.

They are written by a thread of its own from a bounded queue, so that no step waits for the API
server; what finds no room is dropped and counted.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from hami_web.core.trouble import Trouble
from node_agent.cluster import Cluster
from node_agent.errors import ClusterError, ClusterNotFound
from node_agent.metrics import AgentMetrics

logger = logging.getLogger(__name__)

_CONTROLLER: Final = "hami.io/node-agent"
_NOTE_MOST: Final = 1024
_NAME_MOST: Final = 200
_QUEUE_MOST: Final = 256
_REMEMBERED_MOST: Final = 2048
_REPEAT_SECONDS: Final = 300.0


class Reason(StrEnum):
    """Why an event was written; stable words for people and for alerts."""

    ALLOCATION_FAILED = "MigAllocationFailed"
    ALLOCATION_SLOW = "MigAllocationSlow"
    RECLAIM_BLOCKED = "MigReclaimBlocked"
    RECLAIM_SLOW = "MigReclaimSlow"
    INSTANCE_LOST = "MigInstanceLost"
    INSTANCE_IN_DOUBT = "MigInstanceInDoubt"
    INSTANCE_RESTORED = "MigInstanceRestored"
    GPU_ERROR = "GpuError"


_ACTIONS: Final = {
    Reason.ALLOCATION_FAILED: "Realize",
    Reason.ALLOCATION_SLOW: "Realize",
    Reason.RECLAIM_BLOCKED: "Reclaim",
    Reason.RECLAIM_SLOW: "Reclaim",
    Reason.INSTANCE_LOST: "Adopt",
    Reason.INSTANCE_IN_DOUBT: "Adopt",
    Reason.INSTANCE_RESTORED: "Realize",
    Reason.GPU_ERROR: "Watch",
}
_NORMAL: Final = frozenset({Reason.ALLOCATION_SLOW, Reason.RECLAIM_SLOW, Reason.INSTANCE_RESTORED})


@dataclass(frozen=True, slots=True)
class PodReference:
    """Which Pod an event is about."""

    namespace: str
    name: str
    uid: str


class PodEvents:
    """Takes events from any thread; :meth:`run` writes them."""

    def __init__(
        self,
        cluster: Cluster,
        node: str,
        metrics: AgentMetrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._node = node
        self._metrics = metrics
        self._clock = clock
        self._mutex = threading.Lock()
        self._ending = threading.Event()
        self._trouble = Trouble(logger, "an event could not be written: %s; again soon")
        self._told: dict[tuple[str, Reason, str], float] = {}
        self._waiting: queue.Queue[tuple[str, dict[str, object]] | None] = queue.Queue(_QUEUE_MOST)

    def tell(self, pod: PodReference, reason: Reason, note: str) -> None:
        """Queue one event; the same one is not repeated within five minutes."""
        if self._is_repetition((pod.uid, reason, note)):
            return
        try:
            self._waiting.put_nowait((pod.namespace, self._document(pod, reason, note)))
        except queue.Full:
            self._metrics.events.labels("dropped").inc()

    def run(self) -> None:
        """Write what is queued until :meth:`end`."""
        while (item := self._waiting.get()) is not None:
            written = self._write(*item)
            if self._ending.is_set() and not written:
                return

    def end(self) -> None:
        """Let :meth:`run` return once what is queued was written, or one of it could not be."""
        self._ending.set()
        while True:
            try:
                self._waiting.put_nowait(None)
            except queue.Full:
                with suppress(queue.Empty):
                    self._waiting.get_nowait()
            else:
                return

    def _is_repetition(self, key: tuple[str, Reason, str]) -> bool:
        now = self._clock()
        with self._mutex:
            if now - self._told.get(key, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
                return True
            self._told.pop(key, None)
            self._told[key] = now
            while len(self._told) > _REMEMBERED_MOST:
                del self._told[next(iter(self._told))]
            return False

    def _write(self, namespace: str, document: dict[str, object]) -> bool:
        try:
            self._cluster.create(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", document)
        except ClusterNotFound:
            self._metrics.events.labels("dropped").inc()
        except ClusterError as error:
            self._metrics.events.labels("failed").inc()
            self._trouble.tell(error)
            return False
        else:
            self._trouble.over()
            self._metrics.events.labels("written").inc()
        return True

    def _document(self, pod: PodReference, reason: Reason, note: str) -> dict[str, object]:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "name": f"{pod.name[:_NAME_MOST].rstrip('-.')}.{time.time_ns():x}",
                "namespace": pod.namespace,
            },
            "eventTime": now,
            "reportingController": _CONTROLLER,
            "reportingInstance": self._node,
            "action": _ACTIONS[reason],
            "reason": reason.value,
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": pod.namespace,
                "name": pod.name,
                "uid": pod.uid,
            },
            "note": note.encode()[:_NOTE_MOST].decode(errors="ignore"),
            "type": "Normal" if reason in _NORMAL else "Warning",
        }
