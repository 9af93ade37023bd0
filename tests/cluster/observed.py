"""What the suite observes of Pods and hardware, and how both are compared."""

from __future__ import annotations

from typing import Any

from tests.cluster import pods
from tests.cluster.installed import InstalledCluster
from tests.cluster.lab import Instances, Lab, wait_until


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


def assert_exist(lab: Lab | InstalledCluster, expected: Instances) -> None:
    """Exactly these instances exist, where the hardware can be looked at."""
    found = lab.instances()
    if found is not None:
        assert found == expected


def environment(lab: Lab | InstalledCluster, pod: Any, container: str) -> str | None:
    """The devices that a container sees, from what it printed."""
    wait_until(f"{container} has printed", lambda: lab.log_of(pod, container))
    return pods.visible_devices(lab.log_of(pod, container))
