"""Rules about controllers that bring another owner to a node, or back to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from hami_web.core.mig_owner import DEPLOY_LABELS
from hami_web.migration.codes import FindingCode
from hami_web.migration.facts import ClusterFacts
from hami_web.migration.findings import FoundFinding
from hami_web.migration.objects import CheckedNode, ClusterPolicy, Workload
from hami_web.migration.reach import may_run_on
from hami_web.migration.recognized import (
    DYNAMIC_SINCE,
    HAMI_PLUGIN,
    MIG_MANAGER,
    hami_version,
    program,
)

MIG_MANAGER_SWITCH: Final = f"{DEPLOY_LABELS}mig-manager"
"""``false`` on a node keeps the GPU Operator's MIG Manager off it; what is absent it sets."""


def returning(node: CheckedNode, facts: ClusterFacts) -> Iterator[FoundFinding]:
    """What would bring another owner to this node, also while it is not there."""
    for workload in facts.workloads:
        if may_run_on(workload, node):
            yield from _of_workload(workload, node.name)
    if node.labels.get(MIG_MANAGER_SWITCH) != "false":
        for policy in facts.policies:
            yield from _of_policy(policy, facts, node.name)


def returning_everywhere(facts: ClusterFacts) -> Iterator[FoundFinding]:
    """The same where it is not known which nodes there are."""
    for workload in facts.workloads:
        yield from _of_workload(workload)
    for policy in facts.policies:
        yield from _of_policy(policy, facts)


def plugin_code(images: Iterable[str]) -> FindingCode:
    """HAMi's plugin by its release: one that does not tell counts as an old one."""
    version = hami_version(images)
    dynamic = version is not None and version >= DYNAMIC_SINCE
    return FindingCode.OTHER_DEVICE_PLUGIN if dynamic else FindingCode.LEGACY_DEVICE_PLUGIN


def subject_of(workload: Workload) -> str:
    """Which object a finding is about."""
    return f"{workload.kind} {workload.full_name}"


def told_of(workload: Workload) -> str:
    """What was seen of it."""
    return f"images {', '.join(workload.images)}; {workload.wanted} wanted"


def _of_workload(workload: Workload, node: str = "") -> Iterator[FoundFinding]:
    what = program(workload.labels)
    if what == MIG_MANAGER:
        # Even with no Pod wanted: a label on a node is enough to bring one back.
        owners = ", ".join(f"{owner.kind}/{owner.name}" for owner in workload.owners)
        evidence = f"{told_of(workload)}; owned by {owners or 'nobody'}"
        code = FindingCode.MIG_MANAGER_CONTROLLED
        yield FoundFinding(code, subject_of(workload), evidence, node)
    elif what == HAMI_PLUGIN and workload.wanted:
        code = plugin_code(workload.images)
        yield FoundFinding(code, subject_of(workload), told_of(workload), node)


def _of_policy(
    policy: ClusterPolicy, facts: ClusterFacts, node: str = ""
) -> Iterator[FoundFinding]:
    if policy.keeps_mig_manager:
        evidence = "spec.migManager.enabled is not false"
        found = [w.full_name for w in facts.workloads if program(w.labels) == MIG_MANAGER]
        if found:
            evidence += f"; DaemonSet {', '.join(found)}"
        subject = f"ClusterPolicy {policy.metadata.name}"
        yield FoundFinding(FindingCode.MIG_MANAGER_CONTROLLED, subject, evidence, node)
