"""The parts of Kubernetes objects that a readiness check looks at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from hami_web.cluster.views import (
    ContainerStatus,
    ObjectMeta,
    OwnedMeta,
    OwnerReference,
    PodCondition,
    Resources,
)
from hami_web.core.annotations import POD_DEVICES_ALLOCATED, POD_DEVICES_TO_ALLOCATE

DEVICE_LISTS: Final = (POD_DEVICES_ALLOCATED, POD_DEVICES_TO_ALLOCATE)
"""Annotations that name a Pod's devices; the second alone while a container waits for its own."""
_NO_TEXTS: Final[Mapping[str, str]] = {}


class CheckedContainer(Struct, gc=False):
    """A container's image and what it asks for."""

    name: str = ""
    image: str = ""
    resources: Resources | None = None


class Expression(Struct, gc=False):
    """What a label, or a field, of a node must be."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class NodeTerm(Struct, rename="camel", gc=False):
    """All of its expressions must hold."""

    match_expressions: list[Expression] | None = None
    match_fields: list[Expression] | None = None


class _NodeTerms(Struct, rename="camel", gc=False):
    node_selector_terms: list[NodeTerm] | None = None


class _NodeAffinity(Struct, gc=False):
    required: _NodeTerms | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class _Affinity(Struct, rename="camel", gc=False):
    node_affinity: _NodeAffinity | None = None


class Toleration(Struct, gc=False):
    """Which taints a Pod bears; without an operator the values must be equal."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class CheckedSpec(Struct, rename="camel", gc=False):
    """Where a Pod runs and what in it."""

    node_name: str = ""
    containers: list[CheckedContainer] | None = None
    init_containers: list[CheckedContainer] | None = None
    node_selector: dict[str, str] | None = None
    affinity: _Affinity | None = None
    tolerations: list[Toleration] | None = None

    @property
    def node_terms(self) -> list[NodeTerm] | None:
        """One of these must fit a node; None where nothing is required."""
        of_nodes = self.affinity.node_affinity if self.affinity else None
        required = of_nodes.required if of_nodes else None
        return None if required is None else required.node_selector_terms or []


class CheckedStatus(Struct, rename="camel", gc=False):
    """How far a Pod is."""

    phase: str = ""
    message: str | None = None
    container_statuses: list[ContainerStatus] | None = None
    conditions: list[PodCondition] | None = None


class Described(Struct, gc=False):
    """An object with labels and owners."""

    metadata: OwnedMeta

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.labels or _NO_TEXTS

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.annotations or _NO_TEXTS

    @property
    def owners(self) -> list[OwnerReference]:
        return self.metadata.owner_references or []

    @property
    def full_name(self) -> str:
        """``namespace/name``."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


class CheckedPod(Described, gc=False):
    """A Pod."""

    spec: CheckedSpec = field(default_factory=CheckedSpec)
    status: CheckedStatus = field(default_factory=CheckedStatus)

    @property
    def runs(self) -> bool:
        """It may use a GPU now or later."""
        return self.status.phase not in ("Succeeded", "Failed")

    @property
    def is_ready(self) -> bool:
        """Its containers answer their readiness probes."""
        conditions = self.status.conditions or []
        return any(item.type == "Ready" and item.status == "True" for item in conditions)

    @property
    def asked(self) -> frozenset[str]:
        """Names of the resources that its containers ask for.

        Those of init containers count: sidecars run as long as the Pod, and the kubelet keeps what
        any init container was given until the Pod is over.
        """
        every = (self.spec.init_containers or []) + (self.spec.containers or [])
        asks = [item.resources or Resources() for item in every]
        return frozenset(
            name for item in asks for name in (*(item.limits or ()), *(item.requests or ()))
        )

    @property
    def may_have_gpus(self) -> bool:
        """It asks for GPUs, or some scheduler wrote that it has some."""
        named = any(key in self.annotations for key in DEVICE_LISTS)
        return self.runs and (named or any(name.startswith("nvidia.com/") for name in self.asked))


class _Template(Struct, gc=False):
    spec: CheckedSpec = field(default_factory=CheckedSpec)


class _WorkloadSpec(Struct, gc=False):
    template: _Template = field(default_factory=_Template)
    replicas: int | None = None


class _WorkloadStatus(Struct, rename="camel", gc=False):
    desired_number_scheduled: int | None = None
    replicas: int | None = None


class Workload(Described, gc=False):
    """A DaemonSet or a Deployment; ``kind`` is set by whoever read it."""

    kind: str = ""
    spec: _WorkloadSpec = field(default_factory=_WorkloadSpec)
    status: _WorkloadStatus = field(default_factory=_WorkloadStatus)

    @property
    def images(self) -> list[str]:
        return [item.image for item in self.spec.template.spec.containers or []]

    @property
    def selector(self) -> Mapping[str, str]:
        """Labels of the nodes that its Pods may run on; none: of all nodes."""
        return self.spec.template.spec.node_selector or _NO_TEXTS

    @property
    def wanted(self) -> int:
        """How many Pods it keeps; a Deployment without a number keeps one."""
        if self.kind == "DaemonSet":
            return self.status.desired_number_scheduled or 0
        return 1 if self.spec.replicas is None else self.spec.replicas


class CheckedCondition(Struct, gc=False):
    """A condition with its words."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


class _NodeInfo(Struct, rename="camel", gc=False):
    kubelet_version: str = ""


class Taint(Struct, gc=False):
    """What keeps Pods off a node."""

    key: str = ""
    value: str | None = None
    effect: str = ""


class _NodeSpec(Struct, gc=False):
    taints: list[Taint] | None = None
    unschedulable: bool = False


class _NodeStatus(Struct, rename="camel", gc=False):
    allocatable: dict[str, str | int] | None = None
    conditions: list[CheckedCondition] | None = None
    node_info: _NodeInfo = field(default_factory=_NodeInfo)


class CheckedNode(Described, gc=False):
    """A node."""

    spec: _NodeSpec = field(default_factory=_NodeSpec)
    status: _NodeStatus = field(default_factory=_NodeStatus)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def offers(self) -> list[str]:
        """Names of what the kubelet can give, of which there is any."""
        return sorted(
            name for name, count in (self.status.allocatable or {}).items() if str(count) != "0"
        )

    def condition(self, type_: str) -> CheckedCondition | None:
        """A condition by its type."""
        return next((c for c in self.status.conditions or [] if c.type == type_), None)


class ConfigMap(Described, gc=False):
    """A ConfigMap's texts."""

    data: dict[str, str] | None = None


class _Service(Struct, gc=False):
    name: str = ""
    namespace: str = ""


class _ClientConfig(Struct, rename="camel", gc=False):
    service: _Service | None = None
    ca_bundle: str | None = None


class _Hook(Struct, rename="camel", gc=False):
    name: str = ""
    client_config: _ClientConfig = field(default_factory=_ClientConfig)


class Webhook(Described, gc=False):
    """A MutatingWebhookConfiguration."""

    webhooks: list[_Hook] | None = None


class _Selector(Struct, rename="camel", gc=False):
    match_labels: dict[str, str] | None = None
    match_expressions: list[dict[str, object]] | None = None


class _BudgetSpec(Struct, gc=False):
    selector: _Selector | None = None


class _BudgetStatus(Struct, rename="camel", gc=False):
    disruptions_allowed: int | None = None


class Budget(Described, gc=False):
    """A PodDisruptionBudget."""

    spec: _BudgetSpec = field(default_factory=_BudgetSpec)
    status: _BudgetStatus = field(default_factory=_BudgetStatus)

    def may_cover(self, pod: CheckedPod) -> bool:
        """Whether the Pod may be one of its; expressions are taken as if they matched."""
        selector = self.spec.selector
        if selector is None or self.metadata.namespace != pod.metadata.namespace:
            return False
        wanted = (selector.match_labels or {}).items()
        return all(pod.labels.get(key) == value for key, value in wanted)


class _MigManager(Struct, gc=False):
    enabled: bool | None = None


class _PolicySpec(Struct, rename="camel", gc=False):
    mig_manager: _MigManager = field(default_factory=_MigManager)


class ClusterPolicy(Described, gc=False):
    """The GPU Operator's policy; MIG Manager is on unless it is switched off."""

    spec: _PolicySpec = field(default_factory=_PolicySpec)

    @property
    def keeps_mig_manager(self) -> bool:
        return self.spec.mig_manager.enabled is not False


class Version(Struct, rename="camel", gc=False):
    """What the API server says of itself."""

    git_version: str = ""


class Namespaced(Struct, gc=False):
    """For kinds of which only the identity counts."""

    metadata: ObjectMeta
