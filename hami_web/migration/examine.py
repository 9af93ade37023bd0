"""From facts to findings and a verdict for each node; pure, so that the same facts say the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from hami_web.migration.cluster_rules import examine_cluster
from hami_web.migration.codes import FindingCode
from hami_web.migration.facts import ClusterFacts
from hami_web.migration.findings import FoundFinding
from hami_web.migration.models import Readiness
from hami_web.migration.node_rules import examine_node, has_gpus
from hami_web.migration.objects import CheckedPod
from hami_web.migration.severity import Severity


@dataclass(frozen=True, slots=True)
class Examination:
    """All findings, each once, and what they say of each node with GPUs."""

    findings: tuple[FoundFinding, ...]
    nodes: dict[str, Readiness]


def examine(facts: ClusterFacts) -> Examination:
    """Apply every rule."""
    on_node: dict[str, list[CheckedPod]] = defaultdict(list)
    for pod in facts.pods:
        on_node[pod.spec.node_name].append(pod)
    found = list(examine_cluster(facts))
    nodes = {}
    everywhere = _blocked(found)
    for node in sorted(facts.nodes, key=lambda node: node.name):
        pods = on_node[node.name]
        if not has_gpus(node, pods):
            continue
        here = list(examine_node(node, pods, facts))
        found += here
        nodes[node.name] = _verdict(facts, blocked=everywhere or _blocked(here))
    return Examination(_once(found), nodes)


def _verdict(facts: ClusterFacts, *, blocked: bool) -> Readiness:
    """What is known to be in the way decides; without that, doubt is no readiness."""
    if blocked:
        return Readiness.NOT_READY
    return Readiness.UNKNOWN if facts.unread else Readiness.READY


def _blocked(found: Iterable[FoundFinding]) -> bool:
    return any(
        item.severity == Severity.BLOCKER and item.code is not FindingCode.NOT_READ
        for item in found
    )


def _once(found: Iterable[FoundFinding]) -> tuple[FoundFinding, ...]:
    """The first of those with the same node, code and subject."""
    kept: dict[tuple[str, str, str], FoundFinding] = {}
    for item in found:
        kept.setdefault((item.node, item.code, item.subject), item)
    return tuple(kept.values())
