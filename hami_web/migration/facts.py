"""What a readiness check knows of a cluster: plain data, and what could not be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from hami_web.core.allowlist import ProfileAllowlist
from hami_web.migration.objects import (
    Budget,
    CheckedNode,
    CheckedPod,
    ClusterPolicy,
    ConfigMap,
    Webhook,
    Workload,
)


class Part(StrEnum):
    """A part of the cluster that is looked at by itself; each is a step of a check's progress."""

    VERSION = "version"
    NODES = "nodes"
    PODS = "pods"
    DAEMON_SETS = "daemonsets"
    DEPLOYMENTS = "deployments"
    CLUSTER_POLICIES = "clusterpolicies"
    BUDGETS = "poddisruptionbudgets"
    WEBHOOKS = "mutatingwebhookconfigurations"
    CERTIFICATE = "certificate"
    CONFIG_MAPS = "configmaps"
    RIGHTS = "rights"


def no_node(name: str) -> str:
    """Why the nodes were not read, where one was asked for that is not there."""
    return f"there is no node {name}"


@dataclass(frozen=True, slots=True)
class MissingRight:
    """Something that a role needs and its ServiceAccount may not."""

    account: str
    verb: str
    resource: str


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The cluster as it was read; ``unread`` says for a part why it could not be read.

    ``certificate_ends`` is when what the extender serves ends, None without TLS; ``read_at`` is
    when all of this was read.
    """

    namespace: str
    version: str = ""
    nodes: tuple[CheckedNode, ...] = ()
    pods: tuple[CheckedPod, ...] = ()
    workloads: tuple[Workload, ...] = ()
    policies: tuple[ClusterPolicy, ...] = ()
    budgets: tuple[Budget, ...] = ()
    webhooks: tuple[Webhook, ...] = ()
    config_maps: tuple[ConfigMap, ...] = ()
    missing_rights: tuple[MissingRight, ...] = ()
    certificate_ends: datetime | None = None
    read_at: datetime | None = None
    allowlist: ProfileAllowlist | None = None
    unread: dict[Part, str] = field(default_factory=dict)
