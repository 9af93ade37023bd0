"""A node of a real Kubernetes is led over from HAMi 2.9 and back, with the rights of the worker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from hami_web.access.roles import Role
from hami_web.core.allowlist import AllowlistEntry, render_allowlist
from node_agent.nvml.simulated.lookups import GpuSpec
from tests.cluster import accounts
from tests.cluster.installed import InstalledCluster
from tests.cluster.lab import A100, SYSTEM, Lab
from tests.cluster.mirror import Mirror
from tests.cluster.node import GpuNode
from tests.cluster.pods import LAB_IMAGE
from tests.cluster.processes import wait_until

NODE = "gpu-node-c"
LEGACY = "legacy"
"""A namespace whose Pods our webhook is not asked about, as those of before were not."""
PLUGIN = {"app.kubernetes.io/component": "hami-device-plugin"}
AGENT = {"app.kubernetes.io/name": "hami-web", "app.kubernetes.io/component": "node-agent"}
IDENTITY = "GPU-5d1c0c7e-0000-4000-8000-000000000001[0-1],NVIDIA,4864,0:;"


def template(labels: dict[str, str], **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": LAB_IMAGE, "imagePullPolicy": "IfNotPresent"}
    more = {"automountServiceAccountToken": False, "terminationGracePeriodSeconds": 1}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container], **more, **spec}}


def workload(name: str, labels: dict[str, str], **spec: Any) -> dict[str, Any]:
    made = {"selector": {"matchLabels": labels}, "template": template(labels, **spec)}
    return {"metadata": {"name": name, "labels": labels}, "spec": made}


@pytest.fixture
def old_world(lab: Lab | InstalledCluster) -> Iterator[Lab]:
    """HAMi 2.9 with a Pod of its own, our agent's DaemonSet, and the rights to lead nodes."""
    if not isinstance(lab, Lab):
        pytest.skip("needs a cluster of the suite's own, to install an older HAMi in")
    core, apps = client.CoreV1Api(), client.AppsV1Api()
    legacy = {"metadata": {"name": LEGACY, "labels": {"hami.io/webhook": "ignore"}}}
    core.create_namespace(legacy)
    accounts.apply("handover")
    apps.create_namespaced_daemon_set(
        SYSTEM, workload("hami-node-agent", AGENT, nodeSelector={"hami.io/dynamic-mig": "on"})
    )
    apps.create_namespaced_daemon_set(
        LEGACY, workload("hami-device-plugin", PLUGIN, nodeSelector={"gpu": "on"})
    )
    scheduler = workload("hami-scheduler", {"app.kubernetes.io/component": "hami-scheduler"})
    apps.create_namespaced_deployment(LEGACY, scheduler)
    train = workload("train", {"app": "train"}, nodeSelector={"kubernetes.io/hostname": NODE})
    identity = {"hami.io/vgpu-devices-allocated": IDENTITY}
    train["spec"]["template"]["metadata"]["annotations"] = identity
    apps.create_namespaced_deployment(LEGACY, train)
    allowlist = render_allowlist([AllowlistEntry(("A100-SXM4-40GB",), ("3g.20gb",))])
    maps = {
        "device-config": {"device-config.yaml": allowlist},
        "kube-scheduler": {"config.yaml": "filterVerb: filter\nschedulerName: hami-scheduler\n"},
    }
    for name, data in maps.items():
        core.create_namespaced_config_map(SYSTEM, {"metadata": {"name": name}, "data": data})
    try:
        yield lab
    finally:
        accounts.remove("handover")
        apps.delete_namespaced_daemon_set("hami-node-agent", SYSTEM)
        for name in maps:
            core.delete_namespaced_config_map(name, SYSTEM)
        # A namespace that ends refuses what a role still tells of its Pods: they go first.
        for name in ("train", "hami-scheduler"):
            apps.delete_namespaced_deployment(name, LEGACY)
        apps.delete_namespaced_daemon_set("hami-device-plugin", LEGACY)
        wait_until("its Pods are gone", lambda: not core.list_namespaced_pod(LEGACY).items)
        core.delete_namespace(LEGACY)


class StandIn:
    """The agent's process, kept as the kubelet would keep the container of its Pod."""

    def __init__(self, node: GpuNode) -> None:
        self._node = node
        self._runs_for = ""
        node.agent.stop()

    def settle(self) -> None:
        pod = next(iter(on_node(SYSTEM, AGENT)), None)
        uid = "" if pod is None or pod.metadata.deletion_timestamp else pod.metadata.uid
        if self._runs_for and uid != self._runs_for:
            self._node.agent.stop()
            self._runs_for = ""
        if uid and not self._runs_for and pod.status.phase == "Running":
            self._node.agent.start()
            self._runs_for = uid


def on_node(namespace: str, labels: dict[str, str]) -> list[Any]:
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    found = client.CoreV1Api().list_namespaced_pod(namespace, label_selector=selector).items
    return [pod for pod in found if pod.spec.node_name == NODE]


def uninstall_scheduler() -> None:
    """What the page leaves to people."""
    client.AppsV1Api().patch_namespaced_deployment_scale(
        "hami-scheduler", LEGACY, {"spec": {"replicas": 0}}
    )


def lead(mirror: Mirror, stand_in: StandIn, direction: str) -> dict[str, Any]:
    """Approve whatever waits for it until the take-over is over."""
    code, row = mirror.call(
        "POST", "/api/v1/handovers/start", {"node": NODE, "direction": direction}
    )
    assert code == 201, row
    path = f"/api/v1/handovers/{row['id']}"
    deadline = time.monotonic() + 240
    while row["outcome"] == "open":
        events = "\n".join(str(e) for e in mirror.call("GET", f"{path}/events")[1]["results"])
        assert time.monotonic() < deadline, f"{row}\n{events}"
        if row["would_do"] and not row["approved_by"]:
            mirror.call("POST", f"{path}/approve", {"step": row["step"]})
        if row["step"] == "scheduler" and row["obstacles"]:
            uninstall_scheduler()
        assert not (on_node(LEGACY, PLUGIN) and on_node(SYSTEM, AGENT)), "two owners"
        stand_in.settle()
        time.sleep(0.3)
        _code, row = mirror.call("GET", path)
    return dict(row)


@contextmanager
def old_node(lab: Lab, folder: Path) -> Iterator[tuple[GpuNode, StandIn]]:
    """A node that HAMi's plugin and its Pod are on."""
    config = folder / "device-config.yaml"
    config.write_text(render_allowlist([AllowlistEntry(("A100-SXM4-40GB",), ("3g.20gb",))]))
    with lab.second_node(NODE, GpuSpec(A100), HAMI_DEVICE_CONFIG=str(config)) as node:
        stand_in = StandIn(node)
        client.CoreV1Api().patch_node(NODE, {"metadata": {"labels": {"gpu": "on"}}})
        wait_until("the older plugin runs on the node", lambda: on_node(LEGACY, PLUGIN))
        wait_until("its Pod runs on the node", lambda: on_node(LEGACY, {"app": "train"}))
        yield node, stand_in


@pytest.mark.slow
def test_a_node_is_led_over_and_back_with_the_rights_of_the_worker(
    old_world: Lab, tmp_path: Path
) -> None:
    mirror = Mirror(old_world, tmp_path, Role.ADMIN, HAMI_LIFECYCLE_IMAGE=LAB_IMAGE)
    with mirror.running(), old_node(old_world, tmp_path) as (node, stand_in):
        before = client.CoreV1Api().read_node(NODE).metadata.labels
        over = lead(mirror, stand_in, "forward")
        assert over["outcome"] == "done"
        _code, tests = mirror.call("GET", f"/api/v1/handovers/{over['id']}/tests")
        found = [(test["profile"], test["state"]) for test in tests["results"]]
        assert found == [("3g.20gb", "passed")]
        assert not client.CoreV1Api().read_node(NODE).spec.unschedulable
        assert on_node(SYSTEM, AGENT)
        assert not on_node(LEGACY, PLUGIN)
        wait_until("no instance is left", lambda: not node.instances())

        back = lead(mirror, stand_in, "back")
        assert back["outcome"] == "rolled_back"
        assert client.CoreV1Api().read_node(NODE).metadata.labels == before
        wait_until("the older plugin is back", lambda: on_node(LEGACY, PLUGIN))
        assert not client.CoreV1Api().read_node(NODE).spec.unschedulable
    unused = accounts.granted("handover") - accounts.used(old_world.directory, "worker")
    assert not unused, f"rights that nobody used: {unused}"
    assert not accounts.refused(old_world.directory, "worker")
