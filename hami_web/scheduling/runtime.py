"""The scheduling core put together: client, watches, state, binds, and the loops around them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hami_web.cluster.client import KubernetesClient, OfficialConnection
from hami_web.cluster.reflector import Reflector, Timing
from hami_web.cluster.resources import nodes, pods
from hami_web.cluster.transport import Transport
from hami_web.cluster.views import PodView
from hami_web.core.errors import InvalidRequest
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.request import parse_pod_request
from hami_web.scheduling.bind import Binder, BindOrder
from hami_web.scheduling.bind_queue import BindQueue
from hami_web.scheduling.decisions import (
    Fits,
    NotReady,
    RefusedEverywhere,
    refused_everywhere,
)
from hami_web.scheduling.measures import Durations
from hami_web.scheduling.nodelock import LockChanges, NodeLocks
from hami_web.scheduling.sinks import NodeSink, PodSink
from hami_web.scheduling.state import ClusterState, Held
from hami_web.scheduling.waiting import Waiting, WaitingPods, Waker

logger = logging.getLogger(__name__)

USER_AGENT = "hami-web-extender"
SILENCE_MOST_S = 360.0
"""Longer than any watch lasts: an API server unheard for this long may have bound and freed
anything, so nothing is decided."""
EXPIRY_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """What a process chooses. ``kubeconfig`` None means the Pod's ServiceAccount; seconds."""

    kubeconfig: Path | None = None
    policy: SchedulingPolicy = field(default_factory=SchedulingPolicy)
    scheduler_name: str = "hami-scheduler"
    bind_wait_s: float = 20.0
    most_waiting_binds: int = 96
    timing: Timing = field(default_factory=Timing)


class Runtime:
    """Everything that ``/filter`` and ``/bind`` need, from ``start`` to ``stop``."""

    def __init__(
        self, options: RuntimeOptions, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._connection = OfficialConnection(options.kubeconfig)
        transport = Transport(self._connection, user_agent=USER_AGENT)
        cluster = KubernetesClient(transport)
        changes = LockChanges()
        self.state = ClusterState(options.policy)
        self.waiting = WaitingPods()
        self.queue = BindQueue(most_waiting=options.most_waiting_binds)
        locks = NodeLocks(cluster, changes)
        self.binder = Binder(cluster, self.state, locks, self.queue, wait_s=options.bind_wait_s)
        self.waker = Waker(self.waiting, self._hold_if_free, cluster, give_up=self.state.release)
        self.filter_durations = Durations()
        self.reflectors: tuple[Reflector[Any], ...] = (
            Reflector(
                "nodes", nodes(transport), NodeSink(self.state, changes), timing=options.timing
            ),
            Reflector(
                "pods",
                pods(transport),
                PodSink(self.state, self.waiting, options.scheduler_name),
                timing=options.timing,
            ),
        )
        self._stopped = threading.Event()
        self._expiry = threading.Thread(target=self._expire, name="hold-expiry", daemon=True)

    def start(self) -> None:
        """Begin to watch; answers come once the first lists are complete."""
        self.state.subscribe(lambda _version: self.waker.notice())
        for reflector in self.reflectors:
            reflector.start()
        self.waker.start()
        self._expiry.start()

    def stop(self) -> None:
        """End every thread and close the connections."""
        self._stopped.set()
        for reflector in self.reflectors:
            reflector.stop()
        self.waker.stop()
        if self._expiry.is_alive():
            self._expiry.join(5)
        self._connection.close()

    def not_ready_because(self) -> str | None:
        """Why nothing can be decided now, or None."""
        for reflector in self.reflectors:
            if not reflector.synced.is_set():
                return f"the first list of {reflector.name} is not complete yet"
            age = reflector.age_s()
            if age is not None and age > SILENCE_MOST_S:
                return f"the API server was not heard for {age:.0f} s about {reflector.name}"
        return None

    def filter(self, pod: PodView, names: tuple[str, ...]) -> Fits | RefusedEverywhere:
        """Choose a node and hold the Pod's devices; a Pod without GPUs fits everywhere.

        Raises NotReady, or InvalidRequest naming what the Pod asks for wrongly.
        """
        began = self._clock()
        reason = self.not_ready_because()
        if reason is not None:
            raise NotReady(reason)
        try:
            return self._filter(pod, names)
        finally:
            self.filter_durations.observe(self._clock() - began)

    def bind(self, order: BindOrder) -> None:
        """Bind a Pod where its devices are held; raises BindError or ClusterError."""
        reason = self.not_ready_because()
        if reason is not None:
            raise NotReady(reason)
        self.binder.bind(order)

    def _filter(self, pod: PodView, names: tuple[str, ...]) -> Fits | RefusedEverywhere:
        request = parse_pod_request(pod.container_specs(), pod.annotations)
        if not request.devices:
            return Fits(names)
        version = self.state.version
        answer = self.state.filter(pod, request, names)
        if isinstance(answer, Held):
            self.waiting.drop(pod.uid)
            return Fits((answer.node,))
        self.waiting.add(pod, names)
        if self.state.version != version:
            # Something became free between the decision and the note that the Pod waits.
            self.waker.notice()
        return refused_everywhere(answer.details)

    def _hold_if_free(self, waiting: Waiting) -> bool:
        try:
            request = parse_pod_request(waiting.pod.container_specs(), waiting.pod.annotations)
        except InvalidRequest:
            return False
        if not request.devices:
            return False
        # Which nodes the scheduler would leave is not known for an adopted Pod; should it leave
        # others than the one held here, its next /filter decides anew.
        names = self.state.node_names() if waiting.names is None else waiting.names
        return isinstance(self.state.filter(waiting.pod, request, names), Held)

    def _expire(self) -> None:
        while not self._stopped.wait(EXPIRY_EVERY_S):
            try:
                self.state.expire_holds()
            except Exception:
                logger.exception("expiring holds")
