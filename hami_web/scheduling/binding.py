"""The one write that binds a Pod, and how an unclear answer to it is settled.

The Binding carries the whole reservation, so that the API server stores node name and reservation
together.
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
from hami_web.core.reasons import Reason
from hami_web.core.request import parse_pod_request
from hami_web.core.signature import KeyFile
from hami_web.scheduling.errors import BindError, BindFailed, BindUnsettled, NoHold, PodChanged
from hami_web.scheduling.holds import Hold
from hami_web.scheduling.record import reservation_annotations
from hami_web.scheduling.records import NodeRecord
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


class BindingWriter:
    """Writes Bindings and reads what became of them; safe for threads."""

    def __init__(
        self,
        cluster: Cluster,
        state: ClusterState,
        keys: KeyFile | None,
        clock: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._state = state
        self._keys = keys
        self._clock = clock

    def write(self, order: BindOrder, hold: Hold, deadline: float) -> None:
        """POST the Binding; settle an unclear answer by reading and, if unbound, writing again."""
        ring = None if self._keys is None else self._keys.ring()
        annotations = reservation_annotations(hold, ring)
        binding = Binding(order.namespace, order.name, order.uid, order.node, annotations)
        unclear: ClusterError | None = None
        for attempt in range(SETTLE_ATTEMPTS):
            if attempt:
                time.sleep(SETTLE_PAUSE_S * attempt)
            self._check_stands(order, hold, unclear)
            try:
                self._cluster.bind(binding)
            except TooManyRequests as error:
                self._wait_for_quiet(order, error, unclear, deadline)
            except Conflict as error:
                self.accept_bound(self._after_conflict(order, error), order)
                return
            except ClusterError as error:
                if not error.outcome_unclear:
                    raise _still_unclear(order, unclear) if unclear else error from error
                unclear = error
                if self._is_bound(order):
                    break
            else:
                break
        else:
            raise _exhausted(order, unclear)
        self._state.confirm(order.uid)

    def write_plain(self, order: BindOrder) -> None:
        """Bind a Pod for which nothing is held because it wants no device."""
        self._cluster.bind(Binding(order.namespace, order.name, order.uid, order.node))

    def read(self, order: BindOrder) -> PodView:
        """The Pod of an order; raises PodChanged when it is gone or another has its name."""
        try:
            pod = self._cluster.get_pod(order.namespace, order.name)
        except NotFound as error:
            raise PodChanged(f"Pod {order.pod}: it is gone") from error
        if pod.uid != order.uid:
            raise PodChanged(
                f"Pod {order.pod}: its UID is {pod.uid}, not {order.uid}: another Pod of that name"
            )
        return pod

    def accept_bound(self, pod: PodView, order: BindOrder) -> None:
        """A bound Pod is success only where it was to be bound, with what was reserved for it.

        Its claims come from the watch, which may already have shown more than was read here.
        """
        check_bound(pod, order)
        self._state.confirm(order.uid)

    def _check_stands(self, order: BindOrder, hold: Hold, unclear: ClusterError | None) -> None:
        """Raise unless exactly this hold still counts and its node takes new work.

        A newer decision, another term or a dead agent may have come while this bind waited.
        """
        node = self._state.snapshot().nodes.get(order.node)
        closed = Reason.NODE_UNREGISTERED if node is None else node.closed
        if self._state.hold_of(order.uid) is not hold:
            text = f"Pod {order.pod}: its devices were given up while it was being bound"
        elif closed is not None:
            text = f"Pod {order.pod}: node {order.node} takes no new work: {closed}"
        elif refused := _refused_gpus(node, hold):
            text = f"Pod {order.pod}: on node {order.node}, {refused}"
        else:
            return
        raise NoHold(text) if unclear is None else _still_unclear(order, unclear)

    def _wait_for_quiet(
        self,
        order: BindOrder,
        error: TooManyRequests,
        unclear: ClusterError | None,
        deadline: float,
    ) -> None:
        """Wait as the API server asks, unless that is beyond the deadline."""
        if self._clock() + error.retry_after_s > deadline:
            raise _still_unclear(order, unclear) if unclear else error
        time.sleep(error.retry_after_s)

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
        check_bound(pod, order)
        return True

    def _after_conflict(self, order: BindOrder, conflict: Conflict) -> PodView:
        """Read the Pod that a Binding conflicted with."""
        pod = self.read(order)
        if not pod.node_name:
            raise BindFailed(f"Pod {order.pod}: {conflict}") from conflict
        return pod


def _refused_gpus(node: NodeRecord | None, hold: Hold) -> str:
    """The GPUs of a hold that are gone or take no new work by now, and why."""
    found = {}
    for item in hold.reservations:
        gpu = None if node is None else node.gpu(item.gpu_uuid)
        refusal = "it is gone" if gpu is None else gpu.refusal
        if refusal is not None:
            found[item.gpu_uuid] = f"GPU {item.gpu_uuid} takes no new work: {refusal}"
    return ", ".join(found.values())


def check_bound(pod: PodView, order: BindOrder) -> None:
    """Raise PodChanged unless the Pod is bound as ordered, with a reservation if it wants one."""
    if pod.uid != order.uid:
        raise PodChanged(f"Pod {order.pod}: another Pod of that name replaced it")
    if pod.node_name != order.node:
        raise PodChanged(f"Pod {order.pod}: bound to node {pod.node_name} already")
    wants = parse_pod_request(pod.container_specs(), pod.annotations).devices
    if wants and pod.annotations.get(keys.POD_NODE) != order.node:
        raise PodChanged(f"Pod {order.pod}: bound to {order.node} by someone else, unreserved")


def _exhausted(order: BindOrder, unclear: ClusterError | None) -> BindError:
    """Every try was refused for load, or one of them is still unclear."""
    if unclear is None:
        return BindFailed(f"Pod {order.pod}: the API server refuses more requests for now")
    return _still_unclear(order, unclear)


def _still_unclear(order: BindOrder, unclear: ClusterError) -> BindUnsettled:
    return BindUnsettled(f"Pod {order.pod}: whether it is bound to {order.node} is open: {unclear}")
