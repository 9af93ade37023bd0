"""From the watches into the scheduling core: occupancy, node locks, waiting Pods."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from hami_web.cluster.views import NodeView, ObjectMeta, PodView, QuotaView
from hami_web.core import annotations as keys
from hami_web.core.errors import InvalidRequest
from hami_web.core.quota import NamespaceQuota, parse_quota
from hami_web.scheduling.collection import settle
from hami_web.scheduling.custody import Custody
from hami_web.scheduling.nodelock import LockChanges
from hami_web.scheduling.pods import read_pod
from hami_web.scheduling.realizations import Realizations
from hami_web.scheduling.state import ClusterState
from hami_web.scheduling.waiting import WaitingPods

logger = logging.getLogger(__name__)

AGAIN_PAUSE_FACTOR: Final = 50
"""Pause after looking at all doubted Pods again, as a multiple of how long that took."""


class NodeSink:
    """Nodes for the state and custody, and the text of their locks for those who wait."""

    def __init__(self, state: ClusterState, locks: LockChanges, custody: Custody) -> None:
        self._state = state
        self._locks = locks
        self._custody = custody
        self._names: set[str] = set()

    def replace(self, items: Iterable[NodeView], *, listed_at: float) -> None:  # noqa: ARG002
        """Take a complete list."""
        locks: dict[str, tuple[str, str]] = {}
        self._state.replace_nodes(self._noting(items, locks))
        for name in self._names - locks.keys():
            self._locks.forget(name)
            self._custody.remove_node(name)
        self._names = set(locks)
        for name, (text, version) in locks.items():
            self._locks.observe(name, text, version)
        settle()

    def put(self, item: NodeView) -> None:
        """Take one node as it is now."""
        self._names.add(item.name)
        self._state.set_node(item)
        self._observe(item)

    def remove(self, metadata: ObjectMeta) -> None:
        """Forget a node."""
        self._names.discard(metadata.name)
        self._state.remove_node(metadata.name)
        self._locks.forget(metadata.name)
        self._custody.remove_node(metadata.name)

    def _observe(self, node: NodeView) -> None:
        self._custody.set_node(node)
        self._locks.observe(node.name, *_lock_of(node))

    def _noting(
        self, nodes: Iterable[NodeView], locks: dict[str, tuple[str, str]]
    ) -> Iterator[NodeView]:
        for node in nodes:
            self._custody.set_node(node)
            locks[node.name] = _lock_of(node)
            yield node


def _lock_of(node: NodeView) -> tuple[str, str]:
    """Text of a node's lock, empty when it is free, and the version that shows it."""
    return node.annotations.get(keys.NODE_LOCK, ""), node.metadata.resource_version


class QuotaSink:
    """ResourceQuotas for the state and, by name, for the metrics.

    One that cannot be read limits nothing and is logged: another quota must not stop because of it.
    A changed quota is no change of occupancy, so ``notice`` is called: a waiting Pod may fit now.
    """

    def __init__(self, state: ClusterState, *, notice: Callable[[], None] = lambda: None) -> None:
        self._notice = notice
        self._state = state
        self._lock = threading.Lock()
        self._quotas: dict[tuple[str, str], NamespaceQuota] = {}

    def quotas(self) -> list[NamespaceQuota]:
        """Those that limit GPU memory or cores."""
        with self._lock:
            return list(self._quotas.values())

    def replace(self, items: Iterable[QuotaView], *, listed_at: float) -> None:  # noqa: ARG002
        """Take a complete list."""
        found = [quota for item in items if (quota := _read_quota(item)) is not None]
        with self._lock:
            self._quotas = {(quota.namespace, quota.name): quota for quota in found}
        self._state.replace_quotas(found)
        self._notice()

    def put(self, item: QuotaView) -> None:
        """Take one quota as it is now."""
        quota = _read_quota(item)
        if quota is None:
            self.remove(item.metadata)
            return
        with self._lock:
            self._quotas[quota.namespace, quota.name] = quota
        self._state.set_quota(quota)
        self._notice()

    def remove(self, metadata: ObjectMeta) -> None:
        """Forget a quota."""
        with self._lock:
            self._quotas.pop((metadata.namespace, metadata.name), None)
        self._state.remove_quota(metadata.namespace, metadata.name)
        self._notice()


def _read_quota(item: QuotaView) -> NamespaceQuota | None:
    try:
        return parse_quota(item.metadata.namespace, item.metadata.name, item.spec.hard or {})
    except InvalidRequest as error:
        logger.warning("%s; it limits nothing", error)
        return None


class PodSink:
    """Pods for the state; a Pod that is bound, over or gone does not wait any more.

    A Pod of ours that kube-scheduler could not schedule waits even if this process never refused
    it: an earlier one did, or could not be reached. kube-scheduler has put it aside for minutes, so
    ``notice`` is called to try it now.
    """

    def __init__(
        self,
        state: ClusterState,
        waiting: WaitingPods,
        custody: Custody,
        scheduler_name: str,
        *,
        notice: Callable[[], None] = lambda: None,
        realizations: Realizations | None = None,
    ) -> None:
        self._notice = notice
        self._state = state
        self._waiting = waiting
        self._realizations = realizations or Realizations()
        self._custody = custody
        self._scheduler_name = scheduler_name
        self._lock = threading.Lock()
        self._again_at = float("-inf")

    def replace(self, items: Iterable[PodView], *, listed_at: float) -> None:
        """Take a complete list that began at ``listed_at`` on the state's clock."""
        uids: set[str] = set()
        waiting: list[PodView] = []
        with self._lock:
            self._custody.read_keys()
            self._state.replace_pods(self._admitted(items, uids, waiting), listed_at=listed_at)
            self._custody.keep(uids)
            self._waiting.keep(pod.uid for pod in waiting)
            for pod in waiting:
                self._adopt(pod)
            snapshot = self._state.snapshot()
            self._realizations.replace(claim for _, _, claim in snapshot.claims())
            settle()

    def put(self, item: PodView) -> None:
        """Take one Pod as it is now."""
        with self._lock:
            self._custody.admit(item)
            self._state.set_pod(item)
        record = read_pod(item)
        self._realizations.observe(item.uid, record.claims if record else ())
        if not _waits(item):
            self._waiting.drop(item.uid)
        self._adopt(item)

    def remove(self, metadata: ObjectMeta) -> None:
        """Forget a Pod."""
        with self._lock:
            self._custody.forget(metadata.uid)
            self._state.remove_pod(metadata.uid)
        self._realizations.observe(metadata.uid, ())
        self._waiting.drop(metadata.uid)

    def look_again(self) -> None:
        """Judge doubted Pods anew: a key, or an agent of their node, may have come or gone.

        However many there are, this takes a small share of the time. While a list arrives, which
        may take long, nothing is done: the list shows them all.
        """
        began = time.monotonic()
        if began < self._again_at or not self._lock.acquire(blocking=False):
            return
        try:
            for pod in self._custody.doubted():
                self._custody.admit(pod)
                self._state.set_pod(pod)
        finally:
            self._lock.release()
        ended = time.monotonic()
        self._again_at = ended + AGAIN_PAUSE_FACTOR * (ended - began)

    def _admitted(
        self, pods: Iterable[PodView], uids: set[str], waiting: list[PodView]
    ) -> Iterator[PodView]:
        """The Pods with the reservations that count; notes all UIDs, and the Pods that wait."""
        for pod in pods:
            uids.add(pod.uid)
            self._custody.admit(pod)
            if _waits(pod):
                waiting.append(pod)
            yield pod

    def _adopt(self, pod: PodView) -> None:
        if (
            pod.is_unscheduled
            and pod.spec.scheduler_name == self._scheduler_name
            and _waits(pod)
            and self._state.hold_of(pod.uid) is None
            and self._waiting.adopt(pod)
        ):
            self._notice()


def _waits(pod: PodView) -> bool:
    return not (pod.node_name or pod.is_terminal or pod.is_deleting)
