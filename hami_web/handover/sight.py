"""What one look shows of one node that is taken over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hami_web.migration.cluster_rules import examine_cluster
from hami_web.migration.facts import ClusterFacts
from hami_web.migration.findings import FoundFinding
from hami_web.migration.node_rules import examine_node
from hami_web.migration.objects import CheckedNode, CheckedPod, Workload

PRODUCT = "hami-web"
AGENT = "node-agent"
"""Labels ``app.kubernetes.io/name`` and ``…/component`` of the agent's DaemonSet and its Pods."""
TEST_LABEL = "hami.io/lifecycle-test"
"""On the Pods of a lifecycle test, with the number of the take-over."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A node and what concerns it; ``node`` is None where there is none of the name.

    ``findings`` are the node's own and the cluster's. ``unread`` says what could not be read.
    """

    name: str
    namespace: str
    node: CheckedNode | None
    pods: tuple[CheckedPod, ...]
    facts: ClusterFacts
    findings: tuple[FoundFinding, ...]

    @property
    def unread(self) -> Mapping[str, str]:
        return {part.value: why for part, why in self.facts.unread.items()}

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.labels if self.node is not None else {}

    @property
    def agent(self) -> Workload | None:
        """The DaemonSet of our agents."""
        return next(
            (w for w in self.facts.workloads if w.kind == "DaemonSet" and self._is_agent(w)), None
        )

    @property
    def agent_pod(self) -> CheckedPod | None:
        """Our agent's Pod on the node; the one that is not being deleted, where there are two."""
        found = [pod for pod in self.pods if pod.runs and self._is_agent(pod)]
        found.sort(key=lambda pod: pod.metadata.deletion_timestamp is not None)
        return found[0] if found else None

    def running(self) -> Iterator[CheckedPod]:
        """Pods of the node that are not over."""
        return (pod for pod in self.pods if pod.runs)

    def _is_agent(self, item: Workload | CheckedPod) -> bool:
        labels = item.labels
        return (
            item.metadata.namespace == self.namespace
            and labels.get("app.kubernetes.io/name") == PRODUCT
            and labels.get("app.kubernetes.io/component") == AGENT
        )


def sight_of(facts: ClusterFacts, name: str) -> Sight:
    """Of all facts, those that concern one node."""
    node = next((item for item in facts.nodes if item.name == name), None)
    pods = tuple(pod for pod in facts.pods if pod.spec.node_name == name)
    own = examine_node(node, list(pods), facts) if node is not None else ()
    findings = (*examine_cluster(facts), *own)
    return Sight(name, facts.namespace, node, pods, facts, findings)
