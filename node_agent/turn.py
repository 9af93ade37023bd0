"""Whose turn it is: the one Pod that an anonymous Allocate can be for, or a refusal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hami_web.core import annotations as keys
from node_agent import nodelock
from node_agent.cluster import Cluster
from node_agent.errors import NoPodToServe
from node_agent.ownership import InstanceRecord, RecordState
from node_agent.pods import ObservedNode, ObservedPod

_ALLOCATING: Final = (keys.BIND_PHASE_ALLOCATING,)
_SUCCESS: Final = (keys.BIND_PHASE_SUCCESS,)
_EITHER: Final = (*_ALLOCATING, *_SUCCESS)
_PENDING: Final = "Pending"


@dataclass(frozen=True, slots=True)
class Turn:
    """The Pod, and the node as it was read with its lock."""

    pod: ObservedPod
    node: ObservedNode


class PodFinder:
    """Finds the Pod through the node lock, and looks whether another one could be meant."""

    def __init__(self, cluster: Cluster, node: str, resource: str) -> None:
        self._cluster = cluster
        self.node = node
        self._resource = resource

    def find(self, devices: int, earlier: Sequence[InstanceRecord]) -> Turn:
        """The one Pod that can ask for so many devices. Raises :class:`NoPodToServe`.

        ``earlier`` are the records of a call with the same device ids: a call that is repeated
        after its Pod was served has no lock any more.
        """
        node = self._cluster.node()
        lock = nodelock.holder(node)
        if lock is None:
            return Turn(self._served_before(earlier), node)
        if not lock.pod_name:
            raise NoPodToServe(f"the lock of node {self.node} names no Pod")
        pod = self._cluster.pod(lock.namespace, lock.pod_name)
        if pod is None:
            raise NoPodToServe(
                f"Pod {lock.namespace}/{lock.pod_name} holds the lock of node {self.node} and "
                "does not exist"
            )
        served = any(record.owner.pod_uid == pod.uid for record in earlier)
        self._check(pod, _EITHER if served else _ALLOCATING)
        self._refuse_rivals(pod, devices)
        return Turn(pod, node)

    def _check(self, pod: ObservedPod, bind_phases: Sequence[str]) -> None:
        assigned = pod.annotations.get(keys.POD_NODE, "")
        bind_phase = pod.annotations.get(keys.POD_BIND_PHASE, "")
        wrong = ""
        if pod.node != self.node or assigned != self.node:
            wrong = f"runs on {pod.node!r} and is reserved on {assigned!r}, not on {self.node!r}"
        elif pod.phase != _PENDING or pod.deleting:
            wrong = f"is {'being deleted' if pod.deleting else pod.phase}, not {_PENDING}"
        elif bind_phase not in bind_phases:
            wrong = f"has bind phase {bind_phase!r}, not {' or '.join(bind_phases)}"
        if wrong:
            raise NoPodToServe(f"Pod {pod.key}, whose turn it is on node {self.node}, {wrong}")

    def _refuse_rivals(self, pod: ObservedPod, devices: int) -> None:
        """The kubelet names no Pod: where two could ask for the same, a guess would be one."""
        for other in self._cluster.pending_pods():
            phase = other.annotations.get(keys.POD_BIND_PHASE, "")
            waits = other.uid != pod.uid and phase not in (*_SUCCESS, keys.BIND_PHASE_FAILED)
            wanted = str(devices)
            if waits and any(limits.get(self._resource) == wanted for limits in other.limits):
                raise NoPodToServe(
                    f"Pod {other.key} is on node {self.node} without a reservation and asks for "
                    f"{devices} {self._resource} like Pod {pod.key}, whose turn it is; GPU Pods "
                    "must be placed by the scheduler with the HAMi extender (spec.schedulerName)"
                )

    def _served_before(self, earlier: Sequence[InstanceRecord]) -> ObservedPod:
        """Nobody holds the lock: only a repetition of a call that succeeded can be served."""
        pod = self._cluster.pod(earlier[0].namespace, earlier[0].pod_name) if earlier else None
        if pod is None or pod.uid != earlier[0].owner.pod_uid or pod.states:
            raise NoPodToServe(
                f"no Pod holds the lock of node {self.node}; GPU Pods must be placed by the "
                "scheduler with the HAMi extender (spec.schedulerName)"
            )
        self._check(pod, _SUCCESS)
        return pod


def records_for(
    records: Iterable[InstanceRecord], ids: tuple[str, ...]
) -> tuple[InstanceRecord, ...]:
    """Realized instances that were made for exactly these kubelet ids, all of one container."""
    found = sorted(
        (r for r in records if r.device_ids == ids and r.state is RecordState.REALIZED),
        key=lambda record: record.owner,
    )
    containers = {(r.owner.pod_uid, r.owner.container_index) for r in found}
    return tuple(found) if len(containers) == 1 else ()
