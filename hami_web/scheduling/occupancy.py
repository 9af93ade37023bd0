"""Nodes and the Pods on them: the records of this moment, and how a change makes new ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from types import MappingProxyType

from hami_web.cluster.views import NodeView
from hami_web.core.quota import NamespaceQuota, Usage
from hami_web.core.tables import TableStore
from hami_web.scheduling.index import ChangeLog
from hami_web.scheduling.nodes import (
    PublishedNode,
    build_record,
    exchange,
    read_node,
    source_of,
)
from hami_web.scheduling.pods import PodRecord
from hami_web.scheduling.quotas import QuotaBook
from hami_web.scheduling.records import ClusterSnapshot, NodeRecord


class Occupants:
    """Published nodes, Pod records by UID, and the node records that follow. Not synchronized."""

    def __init__(self) -> None:
        self.version = 0
        self.nodes: dict[str, NodeRecord] = {}
        self.log = ChangeLog()
        self.tables = TableStore()
        self._published: dict[str, PublishedNode] = {}
        self._agents: dict[str, bool] = {}
        self._pods: dict[str, PodRecord] = {}
        self._pods_on: dict[str, dict[str, PodRecord]] = {}
        self._snapshot = ClusterSnapshot(0, {})
        self._quotas = QuotaBook(self._usage)

    def set_quota(self, quota: NamespaceQuota) -> None:
        """Take a namespace's quota; it counts for what is asked from now on."""
        self._quotas.set_quota(quota, self._pods.values())

    def replace_quotas(self, quotas: Iterable[NamespaceQuota]) -> None:
        """Take a complete list of quotas."""
        present = {(quota.namespace, quota.name): quota for quota in quotas}
        for key in self._quotas.names():
            if key not in present:
                self._quotas.remove_quota(*key)
        for quota in present.values():
            self.set_quota(quota)

    def remove_quota(self, namespace: str, name: str) -> None:
        """Forget a quota."""
        self._quotas.remove_quota(namespace, name)

    def exceeded(self, namespace: str, wanted: Callable[[], Usage]) -> NamespaceQuota | None:
        """The quota that a namespace would exceed with so much more; asked only if it has one."""
        if not self._quotas.limits(namespace):
            return None
        return self._quotas.exceeded_by(namespace, wanted())

    def pod(self, uid: str) -> PodRecord | None:
        """The record of a Pod, held or bound."""
        return self._pods.get(uid)

    def pods_on(self, name: str) -> list[PodRecord]:
        """The records of the Pods on a node."""
        return list(self._pods_on.get(name, {}).values())

    def has_agent(self, name: str) -> bool:
        """Whether a node's agent has a Lease, renewed or not."""
        return name in self._agents

    def read(self, node: NodeView) -> PublishedNode:
        """A node's facts; those that are known already when none changed."""
        known = self._published.get(node.name)
        if known is not None and known.texts == source_of(node):
            return known
        return read_node(node, self.tables)

    def set_node(self, node: NodeView) -> None:
        """Take a node's facts; nothing happens when none changed."""
        self._publish(self.read(node))

    def set_agent(self, name: str, alive: bool | None) -> None:  # noqa: FBT001
        """Whether a node's agent serves; None where it has no Lease, as HAMi's has none."""
        if self._agents.get(name) == alive:
            return
        if alive is None:
            del self._agents[name]
        else:
            self._agents[name] = alive
        published = self._published.get(name)
        if published is not None:
            self._published[name] = replace(published, agent_alive=alive)
            self._rebuild(name)

    def remove_node(self, name: str) -> None:
        """Forget a node's facts."""
        if self._published.pop(name, None) is not None:
            del self.nodes[name]
            self._note(name)

    def replace_nodes(
        self, nodes: Iterable[NodeView], lock: AbstractContextManager[object]
    ) -> None:
        """Take a complete list of nodes, holding the lock for one of them, then for all facts.

        New facts of thousands take a second, in which decisions go on; their nodes come one by one.
        """
        read: dict[str, PublishedNode] = {}
        for node in nodes:
            with lock:
                read[node.name] = self.read(node)
        with lock:
            for published in read.values():
                self._publish(published)
            for name in [name for name in self._published if name not in read]:
                self.remove_node(name)

    def set_pod(self, record: PodRecord) -> None:
        """Take what a Pod occupies, in place of what it occupied before."""
        uid = record.identity.uid
        before = self._pods.get(uid)
        if before == record:
            return
        self._pods[uid] = record
        self._pods_on.setdefault(record.node, {})[uid] = record
        if before is not None and before.node != record.node:
            self._leave(before)
            before = None
        self._reclaim(record.node, before, record)
        self._quotas.count(record)

    def remove_pod(self, uid: str) -> None:
        """Free what a Pod occupied."""
        record = self._pods.pop(uid, None)
        if record is not None:
            self._leave(record)

    def replace_pods(self, records: dict[str, PodRecord]) -> None:
        """Take a complete list of what Pods occupy, by UID; only nodes with a difference change."""
        known = self._pods
        touched = {record.node for uid, record in known.items() if uid not in records}
        if known:
            kept = map(self._as_known, records.values())
            records = {record.identity.uid: record for record in kept}
        pods_on: dict[str, dict[str, PodRecord]] = {}
        for uid, record in records.items():
            node = record.node
            before = known.get(uid)
            if before is not record:
                touched.add(node)
                if before is not None:
                    touched.add(before.node)
            on_node = pods_on.get(node)
            if on_node is None:
                on_node = pods_on[node] = {}
            on_node[uid] = record
        self._pods = records
        self._pods_on = pods_on
        for name in touched:
            self._renew(name)
        self._quotas.recount(records.values())

    def _as_known(self, record: PodRecord) -> PodRecord:
        """The record that is known, and that its node's record refers to, where it is equal."""
        before = self._pods.get(record.identity.uid)
        return before if before is not None and before == record else record

    def snapshot(self) -> ClusterSnapshot:
        """The records of this moment, which never change."""
        if self._snapshot.version != self.version:
            self._snapshot = ClusterSnapshot(self.version, MappingProxyType(self.nodes.copy()))
        return self._snapshot

    def _publish(self, published: PublishedNode) -> None:
        name = published.name
        known = self._published.get(name)
        if known is not None and known.texts == published.texts:
            return
        alive = self._agents.get(name)
        self._published[name] = replace(published, agent_alive=alive)
        self._rebuild(name)

    def _leave(self, record: PodRecord) -> None:
        on_node = self._pods_on[record.node]
        del on_node[record.identity.uid]
        if not on_node:
            del self._pods_on[record.node]
        self._quotas.discount(record)
        self._reclaim(record.node, record, None)

    def _reclaim(self, name: str, left: PodRecord | None, came: PodRecord | None) -> None:
        """Renew the GPUs of a node that one Pod left or came to."""
        record = self.nodes.get(name)
        if record is None:
            return
        renewed = exchange(record, left, came, self.version + 1)
        if renewed is None:
            self._rebuild(name)
            return
        self._note(name)
        self.nodes[name] = renewed

    def _rebuild(self, name: str) -> None:
        self._renew(name)
        for pod in self._pods_on.get(name, {}).values():
            self._quotas.count(pod)

    def _renew(self, name: str) -> None:
        published = self._published.get(name)
        if published is None:
            return
        self._note(name)
        pods = self._pods_on.get(name, {}).values()
        self.nodes[name] = build_record(published, pods, self.version)

    def _usage(self, pod: PodRecord) -> Usage:
        """What a Pod's profiles add up to, as its node publishes them now."""
        record = self.nodes.get(pod.node)
        usage = Usage()
        for claim in pod.claims:
            gpu = None if record is None else record.gpu(claim.gpu_uuid)
            shape = None if gpu is None else gpu.table.by_name.get(claim.profile)
            if shape is not None:
                usage = usage.plus(Usage(shape.profile.memory_mib, shape.profile.core_percent))
        return usage

    def _note(self, name: str) -> None:
        self.version += 1
        self.log.add(name)
