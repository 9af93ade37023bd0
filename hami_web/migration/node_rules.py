"""Rules about one node: who else cuts its GPUs, what runs on them, what they need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hami_web.core import annotations as keys
from hami_web.core.errors import CoreError
from hami_web.core.mig_owner import (
    FIXED_RESOURCE,
    MIG_MANAGER_LABEL,
    MIG_STATE_LABEL,
    MIG_STATES_AT_WORK,
    PAUSED,
    is_paused,
)
from hami_web.core.registration import decode_registration
from hami_web.migration.codes import FindingCode
from hami_web.migration.controllers import plugin_code, returning
from hami_web.migration.facts import ClusterFacts
from hami_web.migration.findings import FoundFinding
from hami_web.migration.objects import DEVICE_LISTS, CheckedNode, CheckedPod
from hami_web.migration.recognized import (
    HAMI_PLUGIN,
    LEGACY_IDENTITY,
    MIG_MANAGER,
    program,
    release,
)

CONDITION: Final = "hami.io/DynamicMIGReady"
OLDEST_KUBELET: Final = (1, 20)
OLDEST_DRIVER: Final = (450, 0)
"""The first driver with MIG."""
_DRIVER_LABELS: Final = ("nvidia.com/cuda.driver-version.full", "nvidia.com/cuda.driver.major")
_GPU_SIGNS: Final = ("nvidia.com/gpu.present", "nvidia.com/mig.capable")
_NEEDS: Final[Mapping[str, FindingCode]] = {
    "MigModeOff": FindingCode.GPU_MODE,
    "MigModePending": FindingCode.GPU_MODE,
    "MigModeEnding": FindingCode.GPU_MODE,
    "ResetNeeded": FindingCode.GPU_RESET,
    "DrainAndResetNeeded": FindingCode.GPU_RESET,
    "RebootNeeded": FindingCode.GPU_REBOOT,
}
"""The words of the agent's node condition that ask people to do something."""


def has_gpus(node: CheckedNode, pods: list[CheckedPod]) -> bool:
    """Whether a node has anything to do with NVIDIA's GPUs, as far as it shows."""
    return bool(
        node.labels.get("gpu") == "on"
        or any(node.labels.get(sign) == "true" for sign in _GPU_SIGNS)
        or keys.NODE_REGISTER in node.annotations
        or any(name.startswith("nvidia.com/") for name in node.offers)
        or any(program(pod.labels) for pod in pods)
    )


def examine_node(
    node: CheckedNode, pods: list[CheckedPod], facts: ClusterFacts
) -> Iterator[FoundFinding]:
    """Everything about one node and the Pods on it."""
    yield from _owners(node, pods)
    yield from returning(node, facts)
    yield from _labels(node)
    for pod in pods:
        if pod.runs:
            yield from _work(node, pod, facts)
    yield from _hardware(node)
    yield from _capability(node, facts)
    yield from _versions(node, facts)


def _owners(node: CheckedNode, pods: list[CheckedPod]) -> Iterator[FoundFinding]:
    named = set()
    for pod in pods:
        what = program(pod.labels)
        if not what or not pod.runs:
            continue
        named.add(f"Pod {pod.full_name} ({what})")
        images = [item.image for item in pod.spec.containers or []]
        code = FindingCode.OTHER_DEVICE_PLUGIN
        if what == MIG_MANAGER:
            code = FindingCode.MIG_MANAGER_RUNS
        elif what == HAMI_PLUGIN:
            code = plugin_code(images)
        evidence = f"{what}; images {', '.join(images)}"
        yield FoundFinding(code, f"Pod {pod.full_name}", evidence, node.name)
    told = node.annotations.get(keys.NODE_MIG_OWNER)
    if told and told not in named:
        evidence = f"annotation {keys.NODE_MIG_OWNER}: {told}"
        yield FoundFinding(FindingCode.OWNER_TOLD, f"Node {node.name}", evidence, node.name)
    fixed = [name for name in node.offers if name.startswith(FIXED_RESOURCE)]
    if fixed:
        evidence = f"allocatable {', '.join(fixed)}"
        yield FoundFinding(FindingCode.FIXED_INSTANCES, f"Node {node.name}", evidence, node.name)


def _labels(node: CheckedNode) -> Iterator[FoundFinding]:
    subject = f"Node {node.name}"

    def found(code: FindingCode, key: str) -> FoundFinding:
        return FoundFinding(code, subject, f"label {key}={node.labels[key]}", node.name)

    if node.labels.get(MIG_MANAGER_LABEL):
        yield found(FindingCode.MIG_CONFIG_LABEL, MIG_MANAGER_LABEL)
    state = node.labels.get(MIG_STATE_LABEL, "")
    if state in MIG_STATES_AT_WORK:
        yield found(FindingCode.MIG_CONFIG_PENDING, MIG_STATE_LABEL)
    elif state == "failed":
        yield found(FindingCode.MIG_CONFIG_FAILED, MIG_STATE_LABEL)
    paused = sorted(key for key, value in node.labels.items() if is_paused(key, value))
    if paused:
        evidence = ", ".join(f"label {key}={PAUSED}" for key in paused)
        yield FoundFinding(FindingCode.PAUSED_FOR_MIG, subject, evidence, node.name)


def _work(node: CheckedNode, pod: CheckedPod, facts: ClusterFacts) -> Iterator[FoundFinding]:
    subject = f"Pod {pod.full_name}"
    texts = (pod.annotations.get(key, "") for key in DEVICE_LISTS)
    identity = next(filter(None, map(LEGACY_IDENTITY.search, texts)), None)
    uses_gpus = any(name.startswith("nvidia.com/") for name in pod.asked)
    if identity:
        yield FoundFinding(FindingCode.LEGACY_POD, subject, identity[0], node.name)
    elif uses_gpus and keys.POD_MIG_ALLOCATIONS not in pod.annotations:
        asked = ", ".join(sorted(name for name in pod.asked if name.startswith("nvidia.com/")))
        yield FoundFinding(FindingCode.OTHER_GPU_WORK, subject, f"asks for {asked}", node.name)
    else:
        return
    if not pod.metadata.owner:
        evidence = "no controller among its owners"
        yield FoundFinding(FindingCode.POD_WITHOUT_CONTROLLER, subject, evidence, node.name)
    for budget in facts.budgets:
        if budget.may_cover(pod) and not budget.status.disruptions_allowed:
            evidence = f"PodDisruptionBudget {budget.full_name} allows no disruption now"
            yield FoundFinding(FindingCode.BUDGET_BLOCKS, subject, evidence, node.name)


def _hardware(node: CheckedNode) -> Iterator[FoundFinding]:
    condition = node.condition(CONDITION)
    words = f"{condition.reason or ''} {condition.message or ''}" if condition else ""
    told = {code for word, code in _NEEDS.items() if word in words.replace(",", " ").split()}
    told |= {code for word, code in _NEEDS.items() if f"{word}:" in words}
    for code in sorted(told):
        evidence = f"{CONDITION}: {(condition and condition.message) or words.strip()}"
        yield FoundFinding(code, f"Node {node.name}", evidence, node.name)


def _capability(node: CheckedNode, facts: ClusterFacts) -> Iterator[FoundFinding]:
    subject = f"Node {node.name}"
    text = node.annotations.get(keys.NODE_REGISTER)
    if text is None:
        evidence = f"no annotation {keys.NODE_REGISTER}"
        yield FoundFinding(FindingCode.AGENT_MISSING, subject, evidence, node.name)
        return
    try:
        decoded = decode_registration(text)
    except CoreError as error:
        yield FoundFinding(FindingCode.REGISTRATION_UNREADABLE, subject, str(error), node.name)
        return
    for uuid, wrong in decoded.refused:
        code = FindingCode.REGISTRATION_UNREADABLE
        yield FoundFinding(code, f"{subject} {uuid}", str(wrong), node.name)
    capability = decoded.capability
    if facts.allowlist is None:
        return
    models = {gpu.model: {p.name for p in gpu.profiles} for gpu in capability.gpus}
    for model, reported in sorted(models.items()):
        allowed = facts.allowlist.profiles_for(model)
        if allowed is None:
            evidence = "in no entry of migProfileAllowlist"
            yield FoundFinding(
                FindingCode.MODEL_NOT_LISTED, f"{subject} {model}", evidence, node.name
            )
        elif missing := sorted(set(allowed) - reported):
            evidence = ", ".join(missing)
            yield FoundFinding(
                FindingCode.PROFILE_NOT_REPORTED, f"{subject} {model}", evidence, node.name
            )


def _versions(node: CheckedNode, facts: ClusterFacts) -> Iterator[FoundFinding]:
    subject = f"Node {node.name}"
    text = node.status.node_info.kubelet_version
    kubelet, server = release(text), release(facts.version)
    if kubelet is not None and kubelet < OLDEST_KUBELET:
        yield FoundFinding(FindingCode.KUBELET_TOO_OLD, subject, f"kubelet {text}", node.name)
    if kubelet is not None and server is not None and kubelet > server:
        evidence = f"kubelet {text}, API server {facts.version}"
        yield FoundFinding(FindingCode.KUBELET_TOO_NEW, subject, evidence, node.name)
    for label in _DRIVER_LABELS:
        shown = node.labels.get(label, "")
        driver = release(shown if "." in shown else f"{shown}.0")
        if driver is not None and driver < OLDEST_DRIVER:
            evidence = f"label {label}={shown}"
            yield FoundFinding(FindingCode.DRIVER_TOO_OLD, subject, evidence, node.name)
            return
