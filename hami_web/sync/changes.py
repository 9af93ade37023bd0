"""What changed in the cluster since it was last written: the sinks of the feed's watches."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from hami_web.cluster.views import NodeView, ObjectMeta, PodView
from hami_web.core.signature import KeyFile
from hami_web.history.refusals import ObservedRefusal
from hami_web.inventory.observed import ObservedNode
from hami_web.reservations.observed import ObservedPod
from hami_web.scheduling.records import NodeRecord
from hami_web.scheduling.state import ClusterState
from hami_web.sync.observing import (
    observe_node,
    observe_pod,
    observe_refusal,
    sign_of_other_owner,
)


@dataclass(frozen=True, slots=True)
class Batch:
    """What must be written so that the mirror is as far as the watches."""

    nodes: tuple[ObservedNode, ...]
    lost_nodes: tuple[str, ...]
    pods: tuple[ObservedPod, ...]
    ended_pods: tuple[str, ...]
    refusals: tuple[ObservedRefusal, ...]

    @property
    def is_empty(self) -> bool:
        return not (self.nodes or self.lost_nodes or self.pods or self.ended_pods or self.refusals)


class PodChanges:
    """Sink of Pods: keeps what the mirror needs of them, and which changed."""

    def __init__(self, state: ClusterState, keys: KeyFile | None = None) -> None:
        self._state = state
        self._keys = keys
        self._lock = threading.Lock()
        self._current: dict[str, ObservedPod] = {}
        self._dirty: set[str] = set()
        self._refusals: dict[str, ObservedRefusal] = {}

    def replace(self, items: Iterable[PodView], *, listed_at: float) -> None:
        """Take a complete list."""
        pods = list(items)
        self._state.replace_pods(pods, listed_at=listed_at)
        with self._lock:
            observed = (observe_pod(pod, self._keys) for pod in pods)
            seen = {found.uid: found for found in observed if found is not None}
            for uid in self._current.keys() | seen.keys():
                self._note(uid, seen.get(uid))
        for pod in pods:
            self._refused(pod)

    def put(self, item: PodView) -> None:
        """Take one Pod as it is now."""
        self._state.set_pod(item)
        with self._lock:
            self._note(item.uid, observe_pod(item, self._keys))
        self._refused(item)

    def remove(self, metadata: ObjectMeta) -> None:
        """A Pod is gone."""
        self._state.remove_pod(metadata.uid)
        with self._lock:
            self._note(metadata.uid, None)

    def take(self) -> tuple[list[ObservedPod], list[str], list[ObservedRefusal]]:
        """What changed since the last call: Pods, UIDs of ended ones, refusals."""
        with self._lock:
            dirty, self._dirty = self._dirty, set()
            refusals, self._refusals = self._refusals, {}
            pods = [self._current[uid] for uid in dirty if uid in self._current]
            ended = [uid for uid in dirty if uid not in self._current]
        return pods, ended, list(refusals.values())

    def give_back(self, batch: Batch) -> None:
        """A batch was not written: it stays to be written, unless it changed since."""
        with self._lock:
            self._dirty.update(pod.uid for pod in batch.pods)
            self._dirty.update(batch.ended_pods)
            for refusal in batch.refusals:
                self._refusals.setdefault(refusal.uid, refusal)

    def _note(self, uid: str, found: ObservedPod | None) -> None:
        if self._current.get(uid) == found:
            return
        if found is None:
            del self._current[uid]
        else:
            self._current[uid] = found
        self._dirty.add(uid)

    def _refused(self, pod: PodView) -> None:
        found = observe_refusal(pod)
        if found is not None:
            with self._lock:
                self._refusals[pod.uid] = found


class NodeChanges:
    """Sink of nodes; a node's record also changes with its Pods and its agent's Lease.

    What tells of another owner of its GPUs is no part of that record and is kept beside.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._lock = threading.Lock()
        self._owners: dict[str, str] = {}
        self._written: dict[str, tuple[NodeRecord, str]] = {}
        self._unwritten_ends: set[str] = set()

    def replace(self, items: Iterable[NodeView], *, listed_at: float) -> None:  # noqa: ARG002
        """Take a complete list."""
        nodes = list(items)
        self._state.replace_nodes(nodes)
        with self._lock:
            self._owners = {node.name: sign_of_other_owner(node) for node in nodes}

    def put(self, item: NodeView) -> None:
        """Take one node as it is now."""
        self._state.set_node(item)
        with self._lock:
            self._owners[item.name] = sign_of_other_owner(item)

    def remove(self, metadata: ObjectMeta) -> None:
        """A node is gone."""
        self._state.remove_node(metadata.name)
        with self._lock:
            self._owners.pop(metadata.name, None)

    def take(self) -> tuple[list[ObservedNode], list[str]]:
        """Nodes whose record changed since the last call, and names of those without GPUs now."""
        with self._lock:
            owners = dict(self._owners)
        records = {n: (r, owners.get(n, "")) for n, r in self._state.snapshot().nodes.items()}
        before, self._written = self._written, records
        observed = {
            name: observe_node(record, owner)
            for name, (record, owner) in records.items()
            if not _is_same(before.get(name), record, owner)
        }
        gone = [name for name in (before.keys() | self._unwritten_ends) if name not in records]
        self._unwritten_ends = set()
        gone += [name for name, seen in observed.items() if seen is None and name in before]
        return [seen for seen in observed.values() if seen is not None], gone

    def give_back(self, batch: Batch) -> None:
        """A batch was not written: its nodes count as changed."""
        for node in batch.nodes:
            self._written.pop(node.name, None)
        self._unwritten_ends.update(batch.lost_nodes)


def _is_same(before: tuple[NodeRecord, str] | None, record: NodeRecord, owner: str) -> bool:
    return before is not None and before[0] is record and before[1] == owner
