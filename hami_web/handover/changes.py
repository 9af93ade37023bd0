"""What approving a step would change in the cluster: shown before, done after, never more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from hami_web.core.mig_owner import DEPLOY_LABELS, MIG_MANAGER_LABEL
from hami_web.handover.goals import (
    AT_DRAIN,
    capability_of,
    could_run,
    others,
    our_pods,
)
from hami_web.handover.lifecycle import trials_of
from hami_web.handover.obstacles import Obstacle, ObstacleCode, of_finding
from hami_web.handover.sight import TEST_LABEL, Sight
from hami_web.handover.standing import Standing
from hami_web.handover.steps import Step
from hami_web.migration.codes import FindingCode
from hami_web.migration.controllers import MIG_MANAGER_SWITCH
from hami_web.migration.objects import CheckedPod
from hami_web.migration.reach import may_run_on

PLUGIN_SWITCH: Final = f"{DEPLOY_LABELS}device-plugin"
"""As :data:`MIG_MANAGER_SWITCH`, for NVIDIA's device plugin."""
_NOT_OURS_TO_SET: Final = ("kubernetes.io/", ".kubernetes.io/")
"""Labels that Kubernetes itself writes."""


@dataclass(frozen=True, slots=True)
class PodName:
    """Exactly this Pod: another one of the name is not meant."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Change:
    """All that is done at once; ``labels`` of the node by key, None removes one."""

    unschedulable: bool | None = None
    labels: Mapping[str, str | None] = field(default_factory=dict)
    evict: tuple[PodName, ...] = ()
    delete: tuple[PodName, ...] = ()
    tests: bool = False

    @property
    def is_nothing(self) -> bool:
        """There is nothing that we could do; what is in the way is for people."""
        touches = self.labels or self.evict or self.delete or self.tests
        return self.unschedulable is None and not touches

    def lines(self) -> Iterator[str]:
        """In words of kubectl, one line for each write."""
        if self.unschedulable is not None:
            yield "cordon" if self.unschedulable else "uncordon"
        for key, value in sorted(self.labels.items()):
            yield f"label {key}-" if value is None else f"label {key}={value}"
        for pod in self.evict:
            yield f"evict {pod}"
        for pod in self.delete:
            yield f"delete {pod}"
        if self.tests:
            yield "lifecycle-test"


NOTHING: Final = Change()


def change_of(step: Step, sight: Sight, standing: Standing) -> Change:
    """What the step would do to the cluster as it is seen now."""
    make = _CHANGES.get(step)
    return NOTHING if make is None else make(sight, standing)


def guards(step: Step, sight: Sight, standing: Standing) -> tuple[Obstacle, ...]:
    """What forbids to do it now, beyond the steps before, which hold."""
    if step is Step.HAND_OVER:
        pending = (i for i in sight.findings if i.code is FindingCode.MIG_CONFIG_PENDING)
        return tuple(of_finding(item) for item in pending)
    if step is Step.PUBLISH:
        return tuple(_shared(sight, standing))
    if step is Step.TEST:
        return tuple(_untestable(sight))
    return ()


def movable(pod: CheckedPod) -> bool:
    """Whether evicting the Pod ends its use of the node, and its controller makes another."""
    kind = pod.metadata.owner.partition("/")[0]
    return kind not in ("", "DaemonSet", "Node")


def _cordon(_sight: Sight, _standing: Standing) -> Change:
    return Change(unschedulable=True)


def _uncordon(_sight: Sight, _standing: Standing) -> Change:
    return Change(unschedulable=False)


def _drain(sight: Sight, _standing: Standing) -> Change:
    named = {item.subject for item in sight.findings if item.code in AT_DRAIN}
    found = (pod for pod in sight.running() if f"Pod {pod.full_name}" in named and movable(pod))
    return Change(evict=tuple(_name(pod) for pod in found if not _is_ending(pod)))


def _hand_over(sight: Sight, _standing: Standing) -> Change:
    labels = sight.labels
    switches = {key for key in (MIG_MANAGER_SWITCH, PLUGIN_SWITCH) if key in labels}
    if any(policy.keeps_mig_manager for policy in sight.facts.policies):
        switches.add(MIG_MANAGER_SWITCH)  # where it is absent, the GPU Operator sets it
    change: dict[str, str | None] = {k: "false" for k in switches if labels.get(k) != "false"}
    if MIG_MANAGER_LABEL in labels:
        change[MIG_MANAGER_LABEL] = None
    for workload in could_run(sight):
        for key in workload.selector:
            ours = not any(part in key for part in _NOT_OURS_TO_SET)
            if ours and not key.startswith(DEPLOY_LABELS) and key in labels:
                change[key] = None
    return Change(labels=change)


def _publish(sight: Sight, _standing: Standing) -> Change:
    wanted = sight.agent.selector if sight.agent is not None else {}
    lacking = {k: v for k, v in wanted.items() if sight.labels.get(k) != v}
    return Change(labels=lacking)


def _test(_sight: Sight, _standing: Standing) -> Change:
    return Change(tests=True)


def _back_drain(sight: Sight, _standing: Standing) -> Change:
    found = [pod for pod in our_pods(sight) if not _is_ending(pod)]
    return Change(
        evict=tuple(_name(pod) for pod in found if TEST_LABEL not in pod.labels and movable(pod)),
        delete=tuple(_name(pod) for pod in found if TEST_LABEL in pod.labels),
    )


def _back_withdraw(sight: Sight, standing: Standing) -> Change:
    """Only labels that were not there before; others may bring an older owner back too early."""
    selector = sight.agent.selector if sight.agent is not None else {}
    saved = standing.saved or {}
    ours = (key for key in selector if key in saved and saved[key] is None)
    return Change(labels={key: None for key in ours if key in sight.labels})


def _back_restore(sight: Sight, standing: Standing) -> Change:
    saved = (standing.saved or {}).items()
    return Change(labels={key: value for key, value in saved if sight.labels.get(key) != value})


def _shared(sight: Sight, standing: Standing) -> Iterator[Obstacle]:
    """The agent's labels must not bring another plugin along."""
    if sight.node is None:
        return
    labels = {**sight.labels, **_publish(sight, standing).labels}
    then = replace(sight.node, metadata=replace(sight.node.metadata, labels=labels))
    for workload in others(sight):
        if may_run_on(workload, then):
            evidence = "the labels that our agent's DaemonSet wants would bring it to the node"
            subject = f"DaemonSet {workload.full_name}"
            yield Obstacle(ObstacleCode.SELECTOR_SHARED, subject, evidence)


def _untestable(sight: Sight) -> Iterator[Obstacle]:
    subject = f"Node {sight.name}"
    if sight.agent_pod is None:
        evidence = f"no Pod of it in namespace {sight.namespace}; the test restarts it"
        yield Obstacle(ObstacleCode.AGENT_ABSENT, subject, evidence)
    capability = capability_of(sight)
    if capability is None or not trials_of(capability):
        yield Obstacle(ObstacleCode.NOTHING_TO_TEST, subject, "no profile is published")


def _name(pod: CheckedPod) -> PodName:
    return PodName(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)


def _is_ending(pod: CheckedPod) -> bool:
    return pod.metadata.deletion_timestamp is not None


_CHANGES: Final[Mapping[Step, Callable[[Sight, Standing], Change]]] = {
    Step.CORDON: _cordon,
    Step.DRAIN: _drain,
    Step.HAND_OVER: _hand_over,
    Step.PUBLISH: _publish,
    Step.TEST: _test,
    Step.UNCORDON: _uncordon,
    Step.BACK_CORDON: _cordon,
    Step.BACK_DRAIN: _back_drain,
    Step.BACK_WITHDRAW: _back_withdraw,
    Step.BACK_RESTORE: _back_restore,
    Step.BACK_UNCORDON: _uncordon,
}
