"""Pods of the suite, and what is observed of them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kubernetes import client
from kubernetes.client.rest import ApiException

from tests.cluster.lab import NAMESPACE
from tests.cluster.processes import wait_until

# The lab's own image prints its environment and waits, or ends with `exit N`. Any other image must
# have a shell, which does the same.
IMAGE = os.environ.get("HAMI_TEST_IMAGE", "")
LAB_IMAGE = "lab.local/pause:1"
SHELL = """env; [ "$1" = exit ] && exit "$2"; trap 'exit 0' TERM; while :; do sleep 0.2; done"""


@dataclass(frozen=True)
class Want:
    """One container: devices, memory of each in MiB, arguments of the image."""

    devices: int = 1
    memory: int | str | None = 4500
    args: Sequence[str] = ()


def manifest(
    name: str,
    *wants: Want,
    annotations: dict[str, str] | None = None,
    scheduler: str | None = None,
    node: str | None = None,
) -> dict[str, Any]:
    """A Pod with these containers; ``node`` is the only one that it may run on."""
    containers = []
    for position, want in enumerate(wants):
        limits: dict[str, Any] = {}
        if want.devices:
            limits["nvidia.com/gpu"] = str(want.devices)
            if want.memory is not None:
                limits["nvidia.com/gpumem"] = str(want.memory)
        containers.append(
            {
                "name": f"c{position}",
                "image": IMAGE or LAB_IMAGE,
                "imagePullPolicy": "IfNotPresent",
                "args": list(want.args),
                **({"command": ["sh", "-c", SHELL, "sh"]} if IMAGE else {}),
                "resources": {"limits": limits},
            }
        )
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "annotations": {"nvidia.com/vgpu-mode": "mig"} | (annotations or {}),
        },
        "spec": ({"schedulerName": scheduler} if scheduler else {})
        | ({"nodeSelector": {"kubernetes.io/hostname": node}} if node else {})
        | {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 5,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "containers": containers,
        },
    }


def create(name: str, *wants: Want, **more: Any) -> Any:
    return client.CoreV1Api().create_namespaced_pod(NAMESPACE, manifest(name, *wants, **more))


def read(name: str) -> Any:
    return client.CoreV1Api().read_namespaced_pod(name, NAMESPACE)


def delete(name: str, grace: int | None = None) -> None:
    body = client.V1DeleteOptions(grace_period_seconds=grace)
    client.CoreV1Api().delete_namespaced_pod(name, NAMESPACE, body=body)


def is_gone(name: str) -> bool:
    try:
        read(name)
    except ApiException as error:
        if error.status == 404:
            return True
        raise
    return False


def running(name: str, seconds: float = 60) -> Any:
    """Wait until the Pod runs; a Pod that failed ends the wait at once."""

    def look() -> Any:
        pod = read(name)
        if pod.status.phase == "Failed":
            raise AssertionError(f"{name} failed: {pod.status.reason}: {pod.status.message}")
        return pod if pod.status.phase == "Running" else None

    return wait_until(f"Pod {name} runs", look, seconds)


def unschedulable(name: str, seconds: float = 30) -> str:
    """Wait until the scheduler says why the Pod waits; returns its words."""

    def look() -> str:
        for condition in read(name).status.conditions or []:
            if condition.type == "PodScheduled" and condition.status == "False":
                return str(condition.message)
        return ""

    return str(wait_until(f"Pod {name} has a reason to wait", look, seconds))


def allocations(pod: Any) -> list[dict[str, Any]]:
    value: list[dict[str, Any]] = json.loads(
        (pod.metadata.annotations or {}).get("hami.io/vgpu-mig-allocations", "[]")
    )
    return value


def visible_devices(environment: str) -> str | None:
    """``NVIDIA_VISIBLE_DEVICES`` as the container printed it, None when it has none.

    A line of a kubelet's log file begins with ``<time> stdout F``.
    """
    found = re.search(r"^(?:\S+ stdout F )?NVIDIA_VISIBLE_DEVICES=(.*)$", environment, re.MULTILINE)
    return found[1] if found else None
