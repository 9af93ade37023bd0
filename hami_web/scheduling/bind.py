"""Binding a Pod to the node where its devices are held.

Every exit that leaves the Pod unbound gives lock and hold back; while it is not known whether the
Pod is bound, both stay, and ``settle`` finds out.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from hami_web.cluster.errors import ClusterError, NotFound
from hami_web.cluster.ports import Cluster
from hami_web.core.errors import CoreError
from hami_web.core.log_lines import about
from hami_web.core.request import parse_pod_request
from hami_web.core.signature import KeyFile
from hami_web.scheduling.bind_queue import BindQueue
from hami_web.scheduling.binding import BindingWriter, BindOrder, check_bound
from hami_web.scheduling.errors import BindError, BindUnsettled, NoHold
from hami_web.scheduling.holds import Hold
from hami_web.scheduling.measures import Durations
from hami_web.scheduling.nodelock import NodeLocks
from hami_web.scheduling.state import ClusterState
from hami_web.scheduling.unsettled import Unsettled

__all__ = ["BindOptions", "BindOrder", "Binder"]

logger = logging.getLogger(__name__)

UNSEEN_AFTER_S = 10.0
"""How long a watch may take to show a Binding before the Pod is read instead."""


@dataclass(frozen=True, slots=True)
class BindOptions:
    """``wait_s`` bounds the whole wait for queue and lock, in seconds; it must be below
    kube-scheduler's ``httpTimeout`` with room for the writes. Without ``keys`` reservations are not
    signed.
    """

    wait_s: float = 20.0
    keys: KeyFile | None = None


class Binder:
    """Binds Pods; safe for threads. ``clock`` is monotonic, in seconds."""

    def __init__(
        self,
        cluster: Cluster,
        state: ClusterState,
        locks: NodeLocks,
        queue: BindQueue,
        *,
        options: BindOptions | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.durations = Durations()
        self.lock_waits = Durations()
        self.unsettled = Unsettled(clock)
        self._options = options or BindOptions()
        self._cluster = cluster
        self._state = state
        self._locks = locks
        self._queue = queue
        self._writer = BindingWriter(cluster, state, self._options.keys, clock)
        self._clock = clock

    def bind(self, order: BindOrder) -> None:
        """Bind, or raise BindError or ClusterError; binding again what is bound is success."""
        began = self._clock()
        try:
            self._bind(order, deadline=began + self._options.wait_s)
        finally:
            self.durations.observe(self._clock() - began)

    def settle(self) -> None:
        """Read the Pods whose binding is open; end what is held for those that stay unbound.

        And those that were bound and that no watch shows: such a Pod may have been deleted before
        a list that was already on its way when it was bound.
        """
        for hold in self._state.unseen_bindings(UNSEEN_AFTER_S):
            with about(pod=f"{hold.namespace}/{hold.name}", pod_uid=hold.pod_uid):
                self._look_for(hold)
        for order, may_come in self.unsettled.open():
            with about(pod=order.pod, pod_uid=order.uid):
                self._settle(order, may_come=may_come)

    def _settle(self, order: BindOrder, *, may_come: bool) -> None:
        try:
            pod = self._cluster.get_pod(order.namespace, order.name)
        except NotFound:
            pod = None
        except ClusterError as error:
            logger.warning("Pod %s: whether it is bound is still open: %s", order.pod, error)
            return
        if pod is not None and pod.uid == order.uid:
            if pod.node_name:
                self._state.confirm(order.uid)
            elif may_come:
                return
            else:
                self._end(order)
        else:
            self._end(order)
        self.unsettled.forget(order)

    def _look_for(self, hold: Hold) -> None:
        """Forget a bound Pod that is gone. One that is there is left to the watch: what was read
        may be older than what the watch showed meanwhile."""
        try:
            is_gone = self._cluster.get_pod(hold.namespace, hold.name).uid != hold.pod_uid
        except NotFound:
            is_gone = True
        except ClusterError as error:
            logger.warning("Pod %s/%s: still unseen: %s", hold.namespace, hold.name, error)
            return
        if is_gone:
            self._state.remove_pod(hold.pod_uid)

    def _end(self, order: BindOrder) -> None:
        self._locks.release(order.node, order.namespace, order.name)
        self._state.release(order.uid)

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
        is_bound = False
        try:
            with self._queue.turn(order.node, deadline=deadline):
                self._bind_held(order, deadline)
            is_bound = True
        except BindUnsettled:
            self.unsettled.add(order)
            raise
        finally:
            if not is_bound:
                self._give_back(order, hold)
        self.unsettled.forget(order)

    def _give_back(self, order: BindOrder, hold: Hold) -> None:
        """Release this hold; a newer one of the Pod is not ours to end, nor one still open."""
        if self._state.hold_of(order.uid) is hold and not self._is_open(order):
            self._state.release(order.uid)

    def _is_open(self, order: BindOrder) -> bool:
        """True when an earlier call's write may still come through."""
        return any(found == order for found, _ in self.unsettled.open())

    def _bind_held(self, order: BindOrder, deadline: float) -> None:
        pod = self._writer.read(order)
        if pod.node_name:
            self._writer.accept_bound(pod, order)
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
            self._writer.write(order, hold, deadline)
        except BindUnsettled:
            raise
        except (BindError, ClusterError, CoreError):
            if not self._is_open(order):
                self._locks.release(order.node, order.namespace, order.name)
            raise

    def _bind_without_hold(self, order: BindOrder) -> None:
        """A second call for a bound Pod is success; a Pod without GPUs is bound plainly."""
        pod = self._writer.read(order)
        if pod.node_name:
            check_bound(pod, order)
            return
        if parse_pod_request(pod.container_specs(), pod.annotations).devices:
            raise NoHold(
                f"Pod {order.pod}: no devices are held for it; /filter has to choose a node first"
            )
        self._writer.write_plain(order)
