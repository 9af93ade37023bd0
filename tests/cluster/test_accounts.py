"""Each role works with exactly its own account: no right is missing, and none is never used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from hami_web.access.roles import Role
from tests.cluster import accounts, pods
from tests.cluster.accounts import Right
from tests.cluster.installed import InstalledCluster
from tests.cluster.lab import NAMESPACE, Lab
from tests.cluster.mirror import Mirror
from tests.cluster.pods import Want
from tests.cluster.processes import wait_until

# What a run without faults does not need, and what does: each is proven on the simulator.
ONLY_AFTER_FAULTS = {
    "extender": {
        Right("", "pods", "get"),  # an unclear answer of a Binding is settled by reading
        Right("", "nodes", "get"),  # another writer of the node was first
        Right("events.k8s.io", "events", "patch"),  # the same event again counts in its series
    },
    "node-agent": {
        Right("events.k8s.io", "events", "create"),  # something failed or took long
    },
    "web": set[Right](),
    "worker": set[Right](),
}


@pytest.fixture
def mirror(lab: Lab | InstalledCluster, tmp_path: Path) -> Iterator[Mirror]:
    if not isinstance(lab, Lab):
        pytest.skip("needs the roles as processes of the suite")
    found = Mirror(lab, tmp_path, Role.OPERATOR)
    with found.running():
        yield found


def test_each_role_has_the_rights_that_its_work_needs_and_no_other(
    lab: Lab, a100: str, mirror: Mirror
) -> None:
    schedule_wait_and_wake(a100)
    look_and_cordon(mirror, a100)
    check_readiness(mirror)

    def unused() -> dict[str, set[Right]]:
        return {
            role: left
            for role in accounts.ROLES
            if (
                left := accounts.granted(role)
                - accounts.used(lab.directory, role)
                - ONLY_AFTER_FAULTS[role]
            )
        }

    missing = {r: found for r in accounts.ROLES if (found := accounts.refused(lab.directory, r))}
    assert not missing, f"rights that the manifests lack: {missing}"
    assert not unused(), f"rights that nobody used: {unused()}"


def schedule_wait_and_wake(a100: str) -> None:
    """The extender's and the agent's main job."""
    only = {"nvidia.com/use-gpuuuid": a100}
    pods.create("whole", Want(memory=None), annotations=only)
    pods.running("whole")
    pods.create("waits", Want(memory=19000), annotations=only)
    pods.unschedulable("waits")
    pods.delete("whole")
    pods.running("waits")


def look_and_cordon(mirror: Mirror, gpu: str) -> None:
    """The web role's: people are asked for, see their namespaces, and cordon a GPU."""
    address = f"/api/v1/gpus/{gpu}"
    wait_until("the mirror has the GPU", lambda: mirror.call("GET", address)[0] == 200)
    assert mirror.call("GET", "/api/v1/reservations")[0] == 200
    for verb in ("cordon", "uncordon"):
        status, answer = mirror.call("POST", f"{address}/{verb}", {})
        assert status == 200, answer


def check_readiness(mirror: Mirror) -> None:
    """The worker's: beside the mirror it looks at what else may own MIG."""
    apps = client.AppsV1Api()
    apps.create_namespaced_daemon_set(NAMESPACE, other_owner())
    try:
        status, run = mirror.call("POST", "/api/v1/migration-runs/start", {})
        assert status == 202, run
        wait_until("the check is over", lambda: is_over(mirror, run["id"]), 60)
    finally:
        apps.delete_namespaced_daemon_set("other-owner", NAMESPACE)


def is_over(mirror: Mirror, run: int) -> bool:
    state = mirror.call("GET", f"/api/v1/migration-runs/{run}")[1]["state"]
    return state in {"finished", "failed"}


def other_owner() -> dict[str, Any]:
    """Another device plugin, on no node; its configuration is looked for."""
    labels = {"app": "other-owner"}
    container = {"name": "c", "image": "example/hami:v2.10.0"}
    spec = {"nodeSelector": {"no": "node"}, "containers": [container]}
    return {
        "metadata": {"name": "other-owner"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
