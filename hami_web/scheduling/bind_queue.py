"""Turns of binds for one node: first come, first served; nodes are independent."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hami_web.scheduling.errors import LockBusy


class BindQueue:
    """Hands out one turn per node at a time, in order of arrival.

    ``most_waiting`` bounds the threads that wait over all nodes, so that binds never take the
    threads that answer ``/filter``. ``clock`` is monotonic, in seconds.
    """

    def __init__(self, *, most_waiting: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_waiting = most_waiting
        self._clock = clock
        self._lock = threading.Lock()
        self._queues: dict[str, deque[threading.Event]] = {}
        self._closed = False

    def close(self) -> None:
        """Let nobody wait any more: those who do are sent away, those whose turn it is go on."""
        with self._lock:
            self._closed = True
            for queue in self._queues.values():
                for ticket in queue:
                    ticket.set()

    @property
    def is_empty(self) -> bool:
        return not self._queues

    @contextmanager
    def turn(self, node: str, *, deadline: float) -> Iterator[None]:
        """Wait for this node's turn until ``deadline`` on the clock; raise LockBusy after it."""
        ticket = self._join(node)
        try:
            if not ticket.wait(max(0.0, deadline - self._clock())):
                raise LockBusy(
                    f"node {node}: {self.depth(node) - 1} other Pods are being bound there; "
                    "the wait was over before the turn came"
                )
            if self._closed and not self._is_first(node, ticket):
                raise LockBusy(f"node {node}: this process is stopping")
            yield
        finally:
            self._leave(node, ticket)

    def depth(self, node: str) -> int:
        """Binds that wait or run for one node."""
        with self._lock:
            return len(self._queues.get(node, ()))

    def depths(self) -> dict[str, int]:
        """Binds that wait or run, per node with any."""
        with self._lock:
            return {node: len(queue) for node, queue in self._queues.items()}

    def _is_first(self, node: str, ticket: threading.Event) -> bool:
        with self._lock:
            return self._queues[node][0] is ticket

    def _join(self, node: str) -> threading.Event:
        ticket = threading.Event()
        with self._lock:
            if self._closed:
                raise LockBusy(f"node {node}: this process is stopping")
            waiting = sum(len(queue) for queue in self._queues.values())
            if waiting >= self._most_waiting:
                raise LockBusy(f"node {node}: {waiting} binds wait already, the most allowed")
            queue = self._queues.setdefault(node, deque())
            queue.append(ticket)
            queue[0].set()
        return ticket

    def _leave(self, node: str, ticket: threading.Event) -> None:
        with self._lock:
            queue = self._queues[node]
            queue.remove(ticket)
            if queue:
                queue[0].set()
            else:
                del self._queues[node]
