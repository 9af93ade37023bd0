"""What must be so for a step to be reached. Each goal is a state of the cluster, not a deed.

A goal that holds is passed without doing anything, and one that stops to hold is gone back to;
so it does not matter who brought it about, or how often we were interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from hami_web.core import annotations as keys
from hami_web.core.capability import NodeCapability
from hami_web.core.errors import CoreError
from hami_web.core.registration import decode_registration
from hami_web.handover.lifecycle import TrialState
from hami_web.handover.obstacles import Obstacle, ObstacleCode, of_finding
from hami_web.handover.sight import TEST_LABEL, Sight
from hami_web.handover.standing import Standing
from hami_web.handover.steps import Step
from hami_web.migration.codes import FindingCode
from hami_web.migration.node_rules import CONDITION
from hami_web.migration.objects import CheckedPod, Workload
from hami_web.migration.reach import may_run_on
from hami_web.migration.recognized import program

Obstacles = Iterator[Obstacle]

AT_ASSESS: Final = frozenset(
    {
        *(FindingCode.KUBELET_TOO_OLD, FindingCode.DRIVER_TOO_OLD),
        *(FindingCode.ALLOWLIST_UNREADABLE, FindingCode.ALLOWLIST_MISSING),
        FindingCode.RIGHT_MISSING,
    }
)
AT_DRAIN: Final = frozenset({FindingCode.LEGACY_POD, FindingCode.OTHER_GPU_WORK})
AT_HAND_OVER: Final = frozenset(
    {
        *(FindingCode.LEGACY_DEVICE_PLUGIN, FindingCode.OTHER_DEVICE_PLUGIN),
        *(FindingCode.MIG_MANAGER_RUNS, FindingCode.MIG_CONFIG_LABEL),
        *(FindingCode.MIG_CONFIG_PENDING, FindingCode.FIXED_INSTANCES),
        *(FindingCode.PAUSED_FOR_MIG, FindingCode.MIG_MANAGER_CONTROLLED),
    }
)
"""Of the node itself; the agent's own word for it counts where the agent runs, at ``publish``."""
AT_SCHEDULER: Final = frozenset(
    {
        *(FindingCode.LEGACY_SCHEDULER, FindingCode.OTHER_SCHEDULER, FindingCode.MIXED_VERSIONS),
        *(FindingCode.OTHER_WEBHOOK, FindingCode.WEBHOOK_UNTRUSTED),
        *(FindingCode.EXTENDER_NOT_CONFIGURED, FindingCode.CERTIFICATE_EXPIRED),
    }
)
AT_PUBLISH: Final = frozenset(
    {
        *(FindingCode.GPU_MODE, FindingCode.GPU_RESET, FindingCode.GPU_REBOOT),
        *(FindingCode.OWNER_TOLD, FindingCode.REGISTRATION_UNREADABLE),
    }
)


def missing(step: Step, sight: Sight, standing: Standing) -> tuple[Obstacle, ...]:
    """What is still in the way of a step; nothing where it is reached."""
    return tuple(_GOALS[step](sight, standing))


def others(sight: Sight) -> Iterator[Workload]:
    """DaemonSets of other programs that cut or offer GPUs."""
    for workload in sight.facts.workloads:
        if workload.kind == "DaemonSet" and program(workload.labels) and workload != sight.agent:
            yield workload


def could_run(sight: Sight) -> Iterator[Workload]:
    """Those whose Pods may run on the node as it is."""
    if sight.node is not None:
        for workload in others(sight):
            if may_run_on(workload, sight.node):
                yield workload


def agent_may_run(sight: Sight) -> bool:
    """Whether our agent's DaemonSet reaches the node."""
    agent, node = sight.agent, sight.node
    return agent is not None and node is not None and may_run_on(agent, node)


def our_pods(sight: Sight) -> Iterator[CheckedPod]:
    """Running Pods with reservations of ours, those of a test too."""
    for pod in sight.running():
        if keys.POD_MIG_ALLOCATIONS in pod.annotations or TEST_LABEL in pod.labels:
            yield pod


def capability_of(sight: Sight) -> NodeCapability | None:
    """What the agent publishes; None where nothing that can be read."""
    text = sight.node.annotations.get(keys.NODE_REGISTER) if sight.node is not None else None
    try:
        return None if text is None else decode_registration(text).capability
    except CoreError:
        return None


def _found(sight: Sight, codes: frozenset[FindingCode]) -> Obstacles:
    return (of_finding(item) for item in sight.findings if item.code in codes)


def _assess(sight: Sight, _standing: Standing) -> Obstacles:
    yield from _found(sight, AT_ASSESS)
    ours = f"ConfigMap {sight.namespace}/"
    for item in sight.findings:
        if item.code is FindingCode.LEGACY_GEOMETRIES and item.subject.startswith(ours):
            yield of_finding(item)


def _cordon(sight: Sight, _standing: Standing) -> Obstacles:
    if sight.node is not None and not sight.node.spec.unschedulable:
        yield Obstacle(ObstacleCode.NOT_CORDONED, f"Node {sight.name}", "spec.unschedulable: false")


def _drain(sight: Sight, _standing: Standing) -> Obstacles:
    yield from _found(sight, AT_DRAIN)


def _hand_over(sight: Sight, _standing: Standing) -> Obstacles:
    named = set()
    for item in sight.findings:
        if item.code in AT_HAND_OVER and item.node:
            named.add(item.subject)
            yield of_finding(item)
    for workload in could_run(sight):
        subject = f"DaemonSet {workload.full_name}"
        if subject not in named:
            evidence = f"{program(workload.labels)}; its Pods may run on the node"
            yield Obstacle(ObstacleCode.OTHER_COULD_RUN, subject, evidence)


def _scheduler(sight: Sight, _standing: Standing) -> Obstacles:
    yield from _found(sight, AT_SCHEDULER)


def _publish(sight: Sight, _standing: Standing) -> Obstacles:
    subject = f"Node {sight.name}"
    if sight.agent is not None and not agent_may_run(sight):
        chosen = ", ".join(f"{k}={v}" for k, v in sorted(sight.agent.selector.items()))
        yield Obstacle(ObstacleCode.AGENT_ABSENT, subject, f"the agent's DaemonSet wants {chosen}")
        return
    capability = capability_of(sight)
    if capability is None or not any(gpu.healthy and gpu.profiles for gpu in capability.gpus):
        evidence = f"{keys.NODE_REGISTER} tells of no GPU that can be cut"
        yield Obstacle(ObstacleCode.NOT_PUBLISHED, subject, evidence)
        return
    condition = sight.node.condition(CONDITION) if sight.node is not None else None
    if condition is None or condition.status != "True":
        seen = f"{condition.reason}: {condition.message}" if condition else "not there"
        yield Obstacle(ObstacleCode.NOT_READY, subject, f"condition {CONDITION} is {seen}")
    yield from _found(sight, AT_PUBLISH)


def _test(sight: Sight, standing: Standing) -> Obstacles:
    if not standing.tests:
        evidence = "no profile was tried since the node is published"
        yield Obstacle(ObstacleCode.TEST_MISSING, f"Node {sight.name}", evidence)
    for test in standing.tests:
        subject = f"{test.profile} of {test.model}"
        if test.state is TrialState.FAILED:
            yield Obstacle(ObstacleCode.TEST_FAILED, subject, test.error)
        elif test.state is not TrialState.PASSED:
            yield Obstacle(ObstacleCode.TEST_MISSING, subject, test.state.value)


def _uncordon(sight: Sight, _standing: Standing) -> Obstacles:
    if sight.node is not None and sight.node.spec.unschedulable:
        evidence = "spec.unschedulable: true"
        yield Obstacle(ObstacleCode.STILL_CORDONED, f"Node {sight.name}", evidence)


def _back_drain(sight: Sight, _standing: Standing) -> Obstacles:
    for pod in our_pods(sight):
        evidence = "it has an instance that we made"
        yield Obstacle(ObstacleCode.OUR_POD_REMAINS, f"Pod {pod.full_name}", evidence)


def _back_withdraw(sight: Sight, _standing: Standing) -> Obstacles:
    agent = sight.agent
    if agent is not None and agent_may_run(sight):
        evidence = "its Pods may run on the node"
        yield Obstacle(ObstacleCode.AGENT_REMAINS, f"DaemonSet {agent.full_name}", evidence)
    if sight.agent_pod is not None:
        yield Obstacle(ObstacleCode.AGENT_REMAINS, f"Pod {sight.agent_pod.full_name}", "it runs")


def _back_restore(sight: Sight, standing: Standing) -> Obstacles:
    for key, value in sorted((standing.saved or {}).items()):
        seen = sight.labels.get(key)
        if seen != value:
            evidence = f"{key} is {seen or 'absent'}, before it was {value or 'absent'}"
            yield Obstacle(ObstacleCode.LABEL_DIFFERS, f"Node {sight.name}", evidence)


def _back_uncordon(sight: Sight, standing: Standing) -> Obstacles:
    """A node that was cordoned when we began is left so."""
    if not standing.was_cordoned:
        yield from _uncordon(sight, standing)


_GOALS: Final[Mapping[Step, Callable[[Sight, Standing], Obstacles]]] = {
    Step.ASSESS: _assess,
    Step.CORDON: _cordon,
    Step.DRAIN: _drain,
    Step.HAND_OVER: _hand_over,
    Step.SCHEDULER: _scheduler,
    Step.PUBLISH: _publish,
    Step.TEST: _test,
    Step.UNCORDON: _uncordon,
    Step.BACK_CORDON: _cordon,
    Step.BACK_DRAIN: _back_drain,
    Step.BACK_WITHDRAW: _back_withdraw,
    Step.BACK_RESTORE: _back_restore,
    Step.BACK_UNCORDON: _back_uncordon,
}
