"""Reads the facts of a check from the API server; each part that cannot be read says why."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec
import yaml

from hami_web.cluster.errors import ClusterError, MalformedAnswer, NotFound
from hami_web.cluster.listing import Listing
from hami_web.cluster.resources import Resource
from hami_web.cluster.reviews import Asked, may
from hami_web.cluster.transport import Request, Transport
from hami_web.core.allowlist import ProfileAllowlist
from hami_web.core.device_config import parse_device_config
from hami_web.core.errors import CoreError
from hami_web.migration.certificates import end_of_served
from hami_web.migration.facts import ClusterFacts, MissingRight, Part, no_node
from hami_web.migration.objects import (
    Budget,
    CheckedNode,
    CheckedPod,
    ClusterPolicy,
    ConfigMap,
    Version,
    Webhook,
    Workload,
)
from hami_web.migration.recognized import HAMI_PLUGIN, MIG_MANAGER, is_hami, program

PAGE: Final = 500
CONFIG_MAPS: Final = (
    "hami-scheduler-device",
    "hami-device-plugin",
    "hami-scheduler",
    "default-mig-parted-config",
    "mig-parted-config",
)
"""Those that charts of HAMi and of the GPU Operator make; read by name where their programs are."""
T = TypeVar("T", bound=Any)
V = TypeVar("V")

_NEEDS: Final = {
    "hami-extender": (
        Asked("list", "pods"),
        Asked("patch", "pods"),
        Asked("create", "pods", subresource="binding"),
        Asked("list", "nodes"),
        Asked("patch", "nodes"),
    ),
    "hami-node-agent": (
        Asked("list", "pods"),
        Asked("patch", "pods"),
        Asked("get", "nodes"),
        Asked("patch", "nodes"),
        Asked("patch", "nodes", subresource="status"),
    ),
}
"""What each role cannot do without, as deploy/rbac grants it."""


class Cancelled(Exception):
    """Whoever asked for the check called it off."""


@dataclass(slots=True)
class Gatherer:
    """Reads one cluster. ``step`` is called before each part and page; it may raise Cancelled.

    With a ``node`` only what concerns it: of nodes, Pods and budgets no others are read, and what
    may concern every node is read whole. ``extender`` is the address at which it serves.
    """

    transport: Transport
    namespace: str
    step: Callable[[Part], None]
    node: str = ""
    extender: str = ""
    unread: dict[Part, str] = field(default_factory=dict)
    _at: Part = Part.VERSION

    def gather(self) -> ClusterFacts:
        """Everything, part by part; what cannot be read is empty and told in ``unread``."""
        version = self._part(Part.VERSION, self._version, "")
        of = f"metadata.name={self.node}" if self.node else ""
        nodes = self._listed(Part.NODES, "/api/v1/nodes", CheckedNode, of)
        if self.node and not nodes:
            self.unread.setdefault(Part.NODES, no_node(self.node))
        of = f"spec.nodeName={self.node}" if self.node else ""
        pods = self._listed(Part.PODS, "/api/v1/pods", CheckedPod, of)
        workloads = self._workloads()
        policies = self._several(Part.CLUSTER_POLICIES, self._policies)
        budgets = self._several(Part.BUDGETS, lambda: self._budgets(pods))
        path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
        webhooks = self._listed(Part.WEBHOOKS, path, Webhook)
        ends = self._part(Part.CERTIFICATE, lambda: end_of_served(self.extender), None)
        config_maps = self._several(Part.CONFIG_MAPS, lambda: self._config_maps(workloads))
        missing = self._several(Part.RIGHTS, self._missing_rights)
        return ClusterFacts(
            namespace=self.namespace,
            version=version,
            nodes=nodes,
            pods=pods,
            workloads=workloads,
            policies=policies,
            budgets=budgets,
            webhooks=webhooks,
            config_maps=config_maps,
            missing_rights=missing,
            certificate_ends=ends,
            read_at=datetime.now(UTC),
            allowlist=allowlist_of(config_maps, self.namespace),
            unread=self.unread,
        )

    def _part(self, part: Part, read: Callable[[], V], empty: V) -> V:
        self._at = part
        self.step(part)
        try:
            return read()
        except ClusterError as error:
            self.unread[part] = str(error)
            return empty

    def _listed(self, part: Part, path: str, view: type[T], of: str = "") -> tuple[T, ...]:
        return self._several(part, lambda: self._every(path, view, of))

    def _several(self, part: Part, read: Callable[[], Iterable[V]]) -> tuple[V, ...]:
        empty: tuple[V, ...] = ()
        return self._part(part, lambda: tuple(read()), empty)

    def _every(self, path: str, view: type[T], of: str = "") -> Iterator[T]:
        """All of a list; each page is told of, so that a long list does not look like a death."""
        resource: Resource[T] = Resource(self.transport, path, view, of=of)
        for index, item in enumerate(Listing(resource, PAGE, threading.Event())):
            if index and index % PAGE == 0:
                self.step(self._at)
            yield item

    def _read(self, path: str, view: type[V]) -> V:
        body = self.transport.send(Request("GET", path))
        try:
            return msgspec.json.decode(body, type=view)
        except msgspec.MsgspecError as error:
            raise MalformedAnswer(f"GET {path}: {error}") from error

    def _version(self) -> str:
        return self._read("/version", Version).git_version

    def _workloads(self) -> tuple[Workload, ...]:
        found = []
        for part, kind in ((Part.DAEMON_SETS, "DaemonSet"), (Part.DEPLOYMENTS, "Deployment")):
            for item in self._listed(part, f"/apis/apps/v1/{part}", Workload):
                item.kind = kind
                found.append(item)
        return tuple(found)

    def _policies(self) -> tuple[ClusterPolicy, ...]:
        """A cluster without the GPU Operator does not know the kind."""
        try:
            return tuple(self._every("/apis/nvidia.com/v1/clusterpolicies", ClusterPolicy))
        except NotFound:
            return ()

    def _budgets(self, pods: Iterable[CheckedPod]) -> tuple[Budget, ...]:
        """Before 1.21 the kind is a beta. For one node those of its Pods' namespaces alone."""
        try:
            return tuple(self._budgets_of("v1", pods))
        except NotFound:
            return tuple(self._budgets_of("v1beta1", pods))

    def _budgets_of(self, version: str, pods: Iterable[CheckedPod]) -> Iterator[Budget]:
        group = f"/apis/policy/{version}"
        if not self.node:
            yield from self._every(f"{group}/poddisruptionbudgets", Budget)
            return
        for namespace in sorted({pod.metadata.namespace for pod in pods if pod.may_have_gpus}):
            path = f"{group}/namespaces/{quote(namespace, safe='')}/poddisruptionbudgets"
            yield from self._every(path, Budget)

    def _config_maps(self, workloads: Iterable[Workload]) -> Iterator[ConfigMap]:
        own = f"/api/v1/namespaces/{quote(self.namespace, safe='')}/configmaps"
        yield from self._every(own, ConfigMap)
        others = {
            workload.metadata.namespace
            for workload in workloads
            if program(workload.labels) in (HAMI_PLUGIN, MIG_MANAGER) or is_hami(workload.images)
        }
        for namespace in sorted(others - {self.namespace}):
            for name in CONFIG_MAPS:
                path = f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps/{name}"
                try:
                    yield self._read(path, ConfigMap)
                except NotFound:
                    continue

    def _missing_rights(self) -> Iterator[MissingRight]:
        for account, needs in _NEEDS.items():
            user = f"system:serviceaccount:{self.namespace}:{account}"
            for asked in needs:
                if not may(self.transport, user, asked):
                    yield MissingRight(account, asked.verb, asked.shown)


def allowlist_of(config_maps: Iterable[ConfigMap], namespace: str) -> ProfileAllowlist | None:
    """The allowlist of a ConfigMap in our namespace; None without a readable one."""
    for item in config_maps:
        if item.metadata.namespace != namespace:
            continue
        for text in (item.data or {}).values():
            try:
                return parse_device_config(yaml.safe_load(text))
            except (yaml.YAMLError, CoreError):
                continue
    return None
