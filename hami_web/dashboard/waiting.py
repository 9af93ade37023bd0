"""Pods that ask for GPUs and have no node yet, with what the scheduler says about them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from hami_web.cluster.views import PodView
from hami_web.core.annotations import RESOURCE_COUNT
from hami_web.dashboard.cluster_map import WaitingPod


class WaitingBook:
    """The waiting Pods by UID; safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pods: Mapping[str, WaitingPod] = {}

    def replace(self, pods: Iterable[PodView]) -> None:
        """Take a complete list."""
        waiting = {pod.uid: _waiting_pod(pod) for pod in pods if _waits(pod)}
        with self._lock:
            self._pods = waiting

    def put(self, pod: PodView) -> None:
        """Take one Pod as it is now."""
        with self._lock:
            rest = {uid: known for uid, known in self._pods.items() if uid != pod.uid}
            self._pods = {**rest, pod.uid: _waiting_pod(pod)} if _waits(pod) else rest

    def remove(self, uid: str) -> None:
        """Forget a Pod."""
        with self._lock:
            self._pods = {key: pod for key, pod in self._pods.items() if key != uid}

    def listed(self) -> list[WaitingPod]:
        """All of them by name."""
        return sorted(self._pods.values(), key=lambda waiting: waiting.pod)


def _waiting_pod(pod: PodView) -> WaitingPod:
    return WaitingPod(pod.full_name, pod.scheduling_message)


def _waits(pod: PodView) -> bool:
    if pod.node_name or pod.is_terminal or pod.is_deleting:
        return False
    return any(spec.quantity(RESOURCE_COUNT) is not None for spec in pod.container_specs())
