"""The parts of Kubernetes objects that we use, decoded straight from the API server's bytes.

msgspec skips every field that is not declared, so a Pod of several kB costs microseconds and a few
hundred bytes. Go writes ``null`` for empty maps and lists in places, hence the optional fields and
the properties that hide them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from hami_web.core.request import ContainerSpec

_NOTHING: Mapping[str, str] = {}


class ObjectMeta(Struct, rename="camel", gc=False):
    """Identity, versions and labels of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class Resources(Struct, gc=False):
    """Resource values as the API server writes them."""

    limits: dict[str, str | int] | None = None
    requests: dict[str, str | int] | None = None


class SecurityContext(Struct, gc=False):
    """A privileged container sees every GPU, whatever it was given."""

    privileged: bool | None = None


class EnvironmentVariable(Struct, gc=False):
    """One variable; ``value`` is empty where it comes from elsewhere."""

    name: str = ""
    value: str | None = None


class Container(Struct, rename="camel", gc=False):
    """One container; ``restart_policy`` is set on sidecars only."""

    name: str = ""
    resources: Resources | None = None
    restart_policy: str | None = None
    security_context: SecurityContext | None = None
    env: list[EnvironmentVariable] | None = None

    @property
    def is_privileged(self) -> bool:
        return self.security_context is not None and bool(self.security_context.privileged)

    def spec(self) -> ContainerSpec:
        """The values that a request is read from."""
        resources = self.resources or Resources()
        return ContainerSpec(self.name, resources.limits or {}, resources.requests or {})


class PodSpec(Struct, rename="camel", gc=False):
    """Where a Pod runs and what it asks for."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None


class PodCondition(Struct, gc=False):
    """One condition of a Pod; kube-scheduler's words are in ``message``."""

    type: str = ""
    status: str = ""
    message: str | None = None


class PodStatus(Struct, gc=False):
    """Phase, the reason of a failure, and conditions."""

    phase: str = ""
    reason: str | None = None
    conditions: list[PodCondition] | None = None


class PodView(Struct, gc=False):
    """A Pod. ``metadata.uid`` is its identity; a name may come back with another UID."""

    metadata: ObjectMeta
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def full_name(self) -> str:
        """``namespace/name``."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.annotations or _NOTHING

    @property
    def node_name(self) -> str:
        """Empty until the Pod is bound."""
        return self.spec.node_name

    @property
    def is_terminal(self) -> bool:
        """No container of it runs or will run again."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_unscheduled(self) -> bool:
        """kube-scheduler tried the Pod, did not bind it, and said so."""
        return self._not_scheduled is not None

    @property
    def scheduling_message(self) -> str:
        """Why kube-scheduler found no node; empty when it has not said."""
        condition = self._not_scheduled
        return "" if condition is None else condition.message or ""

    @property
    def _not_scheduled(self) -> PodCondition | None:
        conditions = self.status.conditions or []
        return next(
            (c for c in conditions if c.type == "PodScheduled" and c.status == "False"), None
        )

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    def container_specs(self) -> list[ContainerSpec]:
        """Init containers, then app containers: positions are the wire's container indexes."""
        every = (self.spec.init_containers or []) + (self.spec.containers or [])
        return [container.spec() for container in every]


class Since(Struct, rename="camel", gc=False):
    """A state of a container; times are RFC 3339 with whole seconds."""

    started_at: str | None = None


class ContainerState(Struct, gc=False):
    """What a container does now."""

    running: Since | None = None
    terminated: Since | None = None


class ContainerStatus(Struct, gc=False):
    """A container by name."""

    name: str = ""
    state: ContainerState | None = None

    @property
    def started_at(self) -> str | None:
        """When it began to run, this time; None before."""
        state = self.state or ContainerState()
        since = state.running or state.terminated
        return None if since is None else since.started_at


class PodProgress(PodStatus, rename="camel", gc=False):
    """A status with its containers."""

    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class OwnerReference(Struct, gc=False):
    """Who made an object."""

    kind: str = ""
    name: str = ""
    controller: bool | None = None


class OwnedMeta(ObjectMeta, rename="camel", gc=False):
    """Identity with owners."""

    owner_references: list[OwnerReference] | None = None

    @property
    def owner(self) -> str:
        """``Kind/name`` of the controller, empty without one."""
        references = self.owner_references or []
        return next((f"{item.kind}/{item.name}" for item in references if item.controller), "")


class PodWithProgress(PodView, gc=False):
    """A Pod as history needs it: whose it is, and how far its containers are."""

    metadata: OwnedMeta
    status: PodProgress = msgspec.field(default_factory=PodProgress)

    def started_at(self) -> dict[int, str]:
        """When containers began to run, by their position: init containers first."""
        specs = (self.spec.init_containers or []) + (self.spec.containers or [])
        statuses = (self.status.init_container_statuses or []) + (
            self.status.container_statuses or []
        )
        times = {item.name: moment for item in statuses if (moment := item.started_at)}
        return {index: times[spec.name] for index, spec in enumerate(specs) if spec.name in times}


class NodeCondition(Struct, gc=False):
    """One condition of a node."""

    type: str = ""
    status: str = ""


class NodeSpec(Struct, gc=False):
    """Whether the node is cordoned."""

    unschedulable: bool = False


class NodeStatus(Struct, gc=False):
    """What the kubelet offers and how it is."""

    allocatable: dict[str, str | int] | None = None
    conditions: list[NodeCondition] | None = None


class NodeView(Struct, gc=False):
    """A node with its annotations."""

    metadata: ObjectMeta
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.annotations or _NOTHING

    @property
    def is_ready(self) -> bool:
        """The kubelet reports Ready; a node without the condition is not."""
        conditions = self.status.conditions or []
        return any(c.type == "Ready" and c.status == "True" for c in conditions)


class LeaseFields(Struct, rename="camel", gc=False):
    """Who holds a Lease since when; times are RFC 3339 with microseconds."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class LeaseView(Struct, gc=False):
    """A Lease of ``coordination.k8s.io/v1``."""

    metadata: ObjectMeta
    spec: LeaseFields = msgspec.field(default_factory=LeaseFields)

    @property
    def holder(self) -> str:
        """Empty when nobody holds it."""
        return self.spec.holder_identity or ""

    @property
    def duration_s(self) -> float:
        return float(self.spec.lease_duration_seconds or 0)

    @property
    def transitions(self) -> int:
        return self.spec.lease_transitions or 0


class QuotaSpec(Struct, gc=False):
    """What a ResourceQuota limits."""

    hard: dict[str, str | int] | None = None


class QuotaView(Struct, gc=False):
    """A ResourceQuota."""

    metadata: ObjectMeta
    spec: QuotaSpec = msgspec.field(default_factory=QuotaSpec)


Item = TypeVar("Item")


class ListMeta(Struct, rename={"resource_version": "resourceVersion", "more": "continue"}):
    """Version of a list and the token of its next page."""

    resource_version: str = ""
    more: str | None = None


class ObjectList(Struct, Generic[Item]):
    """A list of one kind; Go writes ``null`` for no items."""

    metadata: ListMeta
    items: list[Item] | None = None


class WatchEvent(Struct):
    """One line of a watch; the object is decoded by type."""

    type: str
    object: Raw


class ObjectHead(Struct):
    """Only the identity of an object."""

    metadata: ObjectMeta


class Status(Struct):
    """The API server's refusal inside a watch."""

    code: int = 0
    reason: str = ""
    message: str = ""
