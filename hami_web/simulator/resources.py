"""The kinds that the simulated API server serves, as data."""

from __future__ import annotations

from dataclasses import dataclass

from hami_web.simulator.documents import JsonObject


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind. ``versions`` are all served, the first is how it is stored.

    ``unconditional_update`` says whether a PUT may leave out its resourceVersion, and
    ``create_on_update`` whether a PUT of an absent name creates it, as the real registry has it.
    ``kept_status`` kinds keep the status that a create carries (a kubelet registers its node so).
    """

    plural: str
    kind: str
    group: str = ""
    versions: tuple[str, ...] = ("v1",)
    namespaced: bool = True
    subresources: frozenset[str] = frozenset()
    unconditional_update: bool = True
    create_on_update: bool = False
    kept_status: bool = False
    field_labels: frozenset[str] = frozenset()

    @property
    def label(self) -> str:
        """``pods`` or ``leases.coordination.k8s.io``, as error texts name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def api_version(self, version: str | None = None) -> str:
        """``v1`` or ``policy/v1``."""
        version = version or self.versions[0]
        return f"{self.group}/{version}" if self.group else version

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources


_STATUS = frozenset({"status"})
_EVENT_FIELDS = frozenset(
    {f"involvedObject.{name}" for name in ("kind", "namespace", "name", "uid")}
    | {"reason", "type", "source", "reportingComponent"}
)

PODS = Resource(
    "pods",
    "Pod",
    subresources=frozenset({"status", "binding", "eviction"}),
    field_labels=frozenset(
        {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "status.phase"}
    ),
)
NODES = Resource(
    "nodes",
    "Node",
    namespaced=False,
    subresources=_STATUS,
    kept_status=True,
    field_labels=frozenset({"spec.unschedulable"}),
)
EVENTS = Resource(
    "events", "Event", create_on_update=True, kept_status=True, field_labels=_EVENT_FIELDS
)
NAMESPACES = Resource(
    "namespaces",
    "Namespace",
    namespaced=False,
    subresources=_STATUS,
    field_labels=frozenset({"status.phase"}),
)
CONFIG_MAPS = Resource("configmaps", "ConfigMap")
SECRETS = Resource("secrets", "Secret")
RESOURCE_QUOTAS = Resource("resourcequotas", "ResourceQuota", subresources=_STATUS)
LEASES = Resource(
    "leases",
    "Lease",
    group="coordination.k8s.io",
    unconditional_update=False,
    create_on_update=True,
)
DISRUPTION_BUDGETS = Resource(
    "poddisruptionbudgets",
    "PodDisruptionBudget",
    group="policy",
    versions=("v1", "v1beta1"),
    subresources=_STATUS,
    unconditional_update=False,
)
WEBHOOKS = Resource(
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    group="admissionregistration.k8s.io",
    namespaced=False,
    unconditional_update=False,
)
POLICIES = Resource(
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
    group="admissionregistration.k8s.io",
    namespaced=False,
    unconditional_update=False,
)
POLICY_BINDINGS = Resource(
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    group="admissionregistration.k8s.io",
    namespaced=False,
    unconditional_update=False,
)
PRIORITY_CLASSES = Resource(
    "priorityclasses", "PriorityClass", group="scheduling.k8s.io", namespaced=False
)
DAEMON_SETS = Resource("daemonsets", "DaemonSet", group="apps", subresources=_STATUS)
DEPLOYMENTS = Resource("deployments", "Deployment", group="apps", subresources=_STATUS)
CLUSTER_POLICIES = Resource(
    "clusterpolicies", "ClusterPolicy", group="nvidia.com", namespaced=False, subresources=_STATUS
)
"""Of NVIDIA's GPU Operator; a custom resource, always known here."""

STORED = (
    PODS,
    NODES,
    EVENTS,
    NAMESPACES,
    CONFIG_MAPS,
    SECRETS,
    RESOURCE_QUOTAS,
    LEASES,
    DISRUPTION_BUDGETS,
    WEBHOOKS,
    POLICIES,
    POLICY_BINDINGS,
    PRIORITY_CLASSES,
    DAEMON_SETS,
    DEPLOYMENTS,
    CLUSTER_POLICIES,
)
"""Kinds that are kept, listed and watched."""

NEW_EVENTS = Resource(
    "events",
    "Event",
    group="events.k8s.io",
    create_on_update=True,
    kept_status=True,
)
"""The same events as ``EVENTS`` under the newer API group; stored there."""

BINDINGS = Resource("bindings", "Binding")
TOKEN_REVIEWS = Resource(
    "tokenreviews", "TokenReview", group="authentication.k8s.io", namespaced=False
)
ACCESS_REVIEWS = Resource(
    "subjectaccessreviews", "SubjectAccessReview", group="authorization.k8s.io", namespaced=False
)

_SERVED = {
    (resource.group, version, resource.plural): resource
    for resource in (*STORED, NEW_EVENTS, BINDINGS, TOKEN_REVIEWS, ACCESS_REVIEWS)
    for version in resource.versions
}


def served(group: str, version: str, plural: str) -> Resource | None:
    """The resource at this address, or None."""
    return _SERVED.get((group, version, plural))


def discovery(group: str, version: str) -> JsonObject | None:
    """The ``APIResourceList`` of one group version, or None where nothing is served."""
    found = [r for (g, v, _), r in _SERVED.items() if (g, v) == (group, version)]
    if not found:
        return None
    verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    entries: list[JsonObject] = []
    for resource in found:
        names = [
            resource.plural,
            *(f"{resource.plural}/{sub}" for sub in sorted(resource.subresources)),
        ]
        entries += [
            {
                "name": name,
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                "verbs": verbs if resource in STORED or resource is NEW_EVENTS else ["create"],
            }
            for name in names
        ]
    group_version = f"{group}/{version}" if group else version
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": entries,
    }


def group_list() -> JsonObject:
    """The ``APIGroupList`` of everything outside the core group."""
    groups: dict[str, list[str]] = {}
    for group, version, _ in _SERVED:
        if group and version not in groups.setdefault(group, []):
            groups[group].append(version)
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [
            {
                "name": group,
                "versions": [{"groupVersion": f"{group}/{v}", "version": v} for v in versions],
                "preferredVersion": {
                    "groupVersion": f"{group}/{versions[0]}",
                    "version": versions[0],
                },
            }
            for group, versions in sorted(groups.items())
        ],
    }
