"""Pods of the lifecycle test: what they ask for, and what is seen of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from hami_web.core import annotations as keys
from hami_web.core.errors import CoreError
from hami_web.core.reservation import decode_allocations
from hami_web.handover.lifecycle import Place, SeenAgent, SeenPod, Trial
from hami_web.handover.sight import TEST_LABEL, Sight
from hami_web.migration.node_rules import CONDITION
from hami_web.migration.objects import CheckedPod

FIRST: Final = "a"
SECOND: Final = "b"
WAITS: Final = ("python3", "-c", "import signal; signal.pause()")
"""What a test's container does in the agent's image, which the node has already."""


@dataclass(frozen=True, slots=True)
class Form:
    """How Pods of a test are made; an empty ``image`` is that of the agent on the node."""

    namespace: str
    scheduler: str
    image: str = ""


def pod_name(handover: int, test: int, attempt: int, which: str) -> str:
    """The same for the same attempt, so that a repeated creation makes no second Pod."""
    return f"hami-lifecycle-{handover}-{test}-{attempt}-{which}"


def pod_document(name: str, handover: int, test: Trial, sight: Sight, form: Form) -> dict[str, Any]:
    """A Pod for one device of the test's profile on its GPU, on the cordoned node alone."""
    agent = sight.agent
    image = form.image or next(iter(agent.images if agent is not None else ()), "")
    container: dict[str, Any] = {
        "name": "lifecycle-test",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {
            "limits": {keys.RESOURCE_COUNT: "1"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    if not form.image:
        container["command"] = list(WAITS)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": form.namespace,
            "labels": {TEST_LABEL: str(handover)},
            "annotations": {
                keys.POD_MODE: keys.MODE_MIG,
                keys.POD_PROFILE: test.profile,
                keys.POD_USE_GPU_UUID: test.gpu,
            },
        },
        "spec": {
            "schedulerName": form.scheduler,
            "nodeSelector": {"kubernetes.io/hostname": sight.labels.get(_HOSTNAME, sight.name)},
            # The node is cordoned until the test has passed; whatever else taints it is for GPUs.
            "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "containers": [container],
        },
    }


def seen_pod(pod: CheckedPod | None) -> SeenPod | None:
    """What matters of a test's Pod; a malformed reservation is none."""
    if pod is None:
        return None
    try:
        held = decode_allocations(pod.annotations.get(keys.POD_MIG_ALLOCATIONS, ""))
    except CoreError:
        held = ()
    place = None
    if pod.status.phase == "Running" and len(held) == 1 and held[0].identity is not None:
        placement, identity = held[0].placement, held[0].identity
        place = Place(held[0].gpu_uuid, placement.start, placement.size, identity.mig_uuid)
    words = [item.message or "" for item in pod.status.conditions or [] if item.status == "False"]
    trouble = pod.status.message or next((word for word in words if word), "")
    return SeenPod(place, trouble, over=not pod.runs)


def seen_agent(sight: Sight) -> SeenAgent | None:
    """The agent's Pod on the node; ready when it says so itself, by the node's condition."""
    pod, node = sight.agent_pod, sight.node
    if pod is None or node is None:
        return None
    condition = node.condition(CONDITION)
    works = condition is not None and condition.status == "True"
    return SeenAgent(pod.metadata.uid, pod.is_ready and works)


_HOSTNAME: Final = "kubernetes.io/hostname"
