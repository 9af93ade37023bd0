"""What the suite observes of Pods and hardware, and how both are compared."""

from __future__ import annotations

import re
from typing import Any

from kubernetes import client

from tests.cluster import pods
from tests.cluster.installed import InstalledCluster
from tests.cluster.lab import NAMESPACE, Lab
from tests.cluster.node import Instances
from tests.cluster.processes import wait_until


def realized(name: str) -> list[dict[str, Any]]:
    """Wait until every record of a Pod has its runtime identity."""

    def look() -> list[dict[str, Any]]:
        records = pods.allocations(pods.read(name))
        return records if records and all("migUUID" in r for r in records) else []

    found: list[dict[str, Any]] = wait_until(f"{name} is realized", look, 30)
    return found


def as_instances(records: list[dict[str, Any]]) -> Instances:
    """The instances that records say exist."""
    return {
        (r["gpuUUID"], r["placement"]["start"], r["placement"]["size"]): r["migUUID"]
        for r in records
    }


def placements() -> list[tuple[str, int, int]]:
    """Reservations of all Pods that are not over; no two of them share a memory slice."""
    found = [
        (r["gpuUUID"], r["placement"]["start"], r["placement"]["size"])
        for pod in client.CoreV1Api().list_namespaced_pod(NAMESPACE).items
        if pod.status.phase not in ("Succeeded", "Failed")
        for r in pods.allocations(pod)
    ]
    taken = [(gpu, s) for gpu, start, size in found for s in range(start, start + size)]
    assert len(taken) == len(set(taken)), f"shared memory slices: {sorted(found)}"
    return found


def closed_nodes(lab: Lab) -> set[str]:
    """Nodes that the extender gives no new work."""
    return set(re.findall(r'(?m)^hami_node_closed\{node="([^"]+)"', lab.metrics()))


def assert_exist(lab: Lab | InstalledCluster, expected: Instances) -> None:
    """Exactly these instances exist, where the hardware can be looked at."""
    found = lab.instances()
    if found is not None:
        assert found == expected


def environment(lab: Lab | InstalledCluster, pod: Any, container: str) -> str | None:
    """The devices that a container sees, from what it printed."""
    wait_until(f"{container} has printed", lambda: lab.log_of(pod, container))
    return pods.visible_devices(lab.log_of(pod, container))
