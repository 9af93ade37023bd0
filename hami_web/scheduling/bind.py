"""Binding a Pod to the node where its devices are held, in one write.

The Binding carries the whole reservation, so that the API server stores node name and reservation
together. Every exit that leaves the Pod unbound gives lock and hold back; while it is not known
whether the Pod is bound, both stay.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from hami_web.cluster.errors import ClusterError, Conflict, NotFound, TooManyRequests
from hami_web.cluster.ports import Binding, Cluster
from hami_web.cluster.views import PodView
from hami_web.core import annotations as keys
from hami_web.core.request import parse_pod_request
from hami_web.scheduling.bind_queue import BindQueue
from hami_web.scheduling.errors import (
    BindError,
    BindFailed,
    BindUnsettled,
    NoHold,
    PodChanged,
)
from hami_web.scheduling.holds import Hold
from hami_web.scheduling.measures import Durations
from hami_web.scheduling.nodelock import NodeLocks
from hami_web.scheduling.record import reservation_annotations
from hami_web.scheduling.state import ClusterState

logger = logging.getLogger(__name__)

SETTLE_ATTEMPTS = 4
"""Tries to write or read after an unclear answer."""
SETTLE_PAUSE_S = 0.25


@dataclass(frozen=True, slots=True)
class BindOrder:
    """What kube-scheduler wants bound."""

    namespace: str
    name: str
    uid: str
    node: str

    @property
    def pod(self) -> str:
        return f"{self.namespace}/{self.name}"


class Binder:
    """Binds Pods; safe for threads. ``clock`` is monotonic, in seconds.

    ``wait_s`` bounds the whole wait for queue and lock; it must be below kube-scheduler's
    ``httpTimeout`` with room for the writes.
    """

    def __init__(
        self,
        cluster: Cluster,
        state: ClusterState,
        locks: NodeLocks,
        queue: BindQueue,
        *,
        wait_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.durations = Durations()
        self.lock_waits = Durations()
        self._cluster = cluster
        self._state = state
        self._locks = locks
        self._queue = queue
        self._wait_s = wait_s
        self._clock = clock

    def bind(self, order: BindOrder) -> None:
        """Bind, or raise BindError or ClusterError; binding again what is bound is success."""
        began = self._clock()
        try:
            self._bind(order, deadline=began + self._wait_s)
        finally:
            self.durations.observe(self._clock() - began)

    def _bind(self, order: BindOrder, *, deadline: float) -> None:
        hold = self._state.hold_of(order.uid)
        if hold is None:
            self._bind_without_hold(order)
            return
        if hold.node != order.node:
            raise NoHold(
                f"Pod {order.pod}: its devices are held on node {hold.node}, not on {order.node}"
            )
        self._state.mark_binding(order.uid)
        try:
            with self._queue.turn(order.node, deadline=deadline):
                self._bind_held(order, deadline)
        except BindUnsettled:
            raise
        except (BindError, ClusterError):
            self._state.release(order.uid)
            raise

    def _bind_held(self, order: BindOrder, deadline: float) -> None:
        pod = self._read(order)
        if pod.node_name:
            self._accept_bound(pod, order)
            return
        hold = self._state.hold_of(order.uid)
        if hold is None or hold.node != order.node:
            raise NoHold(f"Pod {order.pod}: its devices were given up while it waited for the node")
        began = self._clock()
        try:
            self._locks.acquire(order.node, pod, deadline=deadline)
        finally:
            self.lock_waits.observe(self._clock() - began)
        try:
            self._write(order, hold, deadline)
        except BindUnsettled:
            raise
        except (BindError, ClusterError):
            self._locks.release(order.node, order.namespace, order.name)
            raise

    def _write(self, order: BindOrder, hold: Hold, deadline: float) -> None:
        """POST the Binding; settle an unclear answer by reading and, if unbound, writing again."""
        binding = Binding(
            order.namespace, order.name, order.uid, order.node, reservation_annotations(hold)
        )
        last: ClusterError | None = None
        for attempt in range(SETTLE_ATTEMPTS):
            if attempt:
                time.sleep(SETTLE_PAUSE_S * attempt)
            try:
                self._cluster.bind(binding)
            except TooManyRequests as error:
                if self._clock() + error.retry_after_s > deadline:
                    raise
                time.sleep(error.retry_after_s)
            except Conflict as error:
                self._accept_bound(self._settled(order, error), order)
                return
            except ClusterError as error:
                if not error.outcome_unclear:
                    raise
                last = error
                if self._is_bound(order):
                    break
            else:
                break
        else:
            raise _exhausted(order, last)
        self._state.confirm(order.uid)

    def _is_bound(self, order: BindOrder) -> bool:
        """Look whether an unclear write happened; False if not, or if that cannot be read."""
        try:
            pod = self._cluster.get_pod(order.namespace, order.name)
        except NotFound as error:
            raise PodChanged(f"Pod {order.pod}: it is gone") from error
        except ClusterError as error:
            logger.warning("Pod %s: whether it is bound cannot be read yet: %s", order.pod, error)
            return False
        if not pod.node_name:
            return False
        _check_bound(pod, order)
        return True

    def _settled(self, order: BindOrder, conflict: Conflict) -> PodView:
        """Read the Pod that a Binding conflicted with."""
        pod = self._read(order)
        if not pod.node_name:
            raise BindFailed(f"Pod {order.pod}: {conflict}") from conflict
        return pod

    def _accept_bound(self, pod: PodView, order: BindOrder) -> None:
        _check_bound(pod, order)
        self._state.set_pod(pod)
        self._state.confirm(order.uid)

    def _bind_without_hold(self, order: BindOrder) -> None:
        """A second call for a bound Pod is success; a Pod without GPUs is bound plainly."""
        pod = self._read(order)
        if pod.node_name:
            _check_bound(pod, order)
            return
        if parse_pod_request(pod.container_specs(), pod.annotations).devices:
            raise NoHold(
                f"Pod {order.pod}: no devices are held for it; /filter has to choose a node first"
            )
        self._cluster.bind(Binding(order.namespace, order.name, order.uid, order.node))

    def _read(self, order: BindOrder) -> PodView:
        try:
            pod = self._cluster.get_pod(order.namespace, order.name)
        except NotFound as error:
            raise PodChanged(f"Pod {order.pod}: it is gone") from error
        if pod.uid != order.uid:
            raise PodChanged(
                f"Pod {order.pod}: its UID is {pod.uid}, not {order.uid}: another Pod of that name"
            )
        return pod


def _check_bound(pod: PodView, order: BindOrder) -> None:
    """A bound Pod is success only where it was to be bound, with what was reserved for it."""
    if pod.uid != order.uid:
        raise PodChanged(f"Pod {order.pod}: another Pod of that name replaced it")
    if pod.node_name != order.node:
        raise PodChanged(f"Pod {order.pod}: bound to node {pod.node_name} already")
    wants = parse_pod_request(pod.container_specs(), pod.annotations).devices
    if wants and pod.annotations.get(keys.POD_NODE) != order.node:
        raise PodChanged(f"Pod {order.pod}: bound to {order.node} by someone else, unreserved")


def _exhausted(order: BindOrder, last: ClusterError | None) -> BindError:
    """Every try was refused for load, or one of them is still unclear."""
    if last is None:
        return BindFailed(f"Pod {order.pod}: the API server refuses more requests for now")
    return BindUnsettled(f"Pod {order.pod}: whether it is bound to {order.node} is open: {last}")
