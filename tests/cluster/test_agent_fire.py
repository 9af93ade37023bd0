"""The node agent while the kubelet restarts, the agent is killed, and the hardware refuses."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kubernetes import client

from tests.cluster import pods
from tests.cluster.installed import InstalledCluster
from tests.cluster.lab import NAMESPACE, NODE, SYSTEM, Lab
from tests.cluster.node import Instances
from tests.cluster.observed import as_instances, assert_exist, closed_nodes, realized
from tests.cluster.pods import Want
from tests.cluster.processes import wait_until

CREATE = "nvmlDeviceCreateGpuInstanceWithPlacement"
RESTARTS = 20


@pytest.fixture(autouse=True)
def own_agent(lab: Lab | InstalledCluster) -> None:
    """These tests kill the agent and look at the simulated hardware."""
    if not isinstance(lab, Lab):
        pytest.skip("needs the agent as a process of the suite")


@contextmanager
def deployment(name: str, replicas: int) -> Iterator[None]:
    """A controller that makes a new Pod for each one that fails, as users have."""
    api = client.AppsV1Api()
    pod = pods.manifest(name, Want())
    spec = pod["spec"] | {"restartPolicy": "Always", "terminationGracePeriodSeconds": 1}
    labels = {"app": name}
    template = {"metadata": pod["metadata"] | {"labels": labels}, "spec": spec}
    template["metadata"].pop("name")
    body = {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }
    api.create_namespaced_deployment(NAMESPACE, body)
    try:
        yield
    finally:
        policy = client.V1DeleteOptions(propagation_policy="Foreground", grace_period_seconds=0)
        api.delete_namespaced_deployment(name, NAMESPACE, body=policy)
        wait_until(f"the Pods of {name} are gone", lambda: not of_app(name))


def of_app(name: str, phase: str | None = None) -> list[Any]:
    found = client.CoreV1Api().list_namespaced_pod(NAMESPACE, label_selector=f"app={name}").items
    return [pod for pod in found if phase in (None, pod.status.phase)]


def running_instances(name: str) -> Instances:
    """Instances of the running Pods of an app; none of them belongs to two."""
    found = [record for pod in of_app(name, "Running") for record in pods.allocations(pod)]
    instances = as_instances([record for record in found if "migUUID" in record])
    assert len(instances) == len(found)
    assert len(set(instances.values())) == len(found)
    return instances


def all_run(lab: Lab, name: str, replicas: int, seconds: float) -> None:
    """Every replica runs on an instance of its own, and nothing else exists."""
    wait_until(f"{replicas} run", lambda: len(of_app(name, "Running")) == replicas, seconds)
    wait_until(
        "exactly their instances exist", lambda: lab.instances() == running_instances(name), 30
    )


def event_reasons() -> set[str]:
    return {event.reason for event in client.CoreV1Api().list_namespaced_event(NAMESPACE).items}


def holder() -> str:
    lease = client.CoordinationV1Api().read_namespaced_lease(f"hami-node-agent-{NODE}", SYSTEM)
    return str(lease.spec.holder_identity or "")


def condition() -> Any:
    found = client.CoreV1Api().read_node(NODE).status.conditions
    return next((item for item in found if item.type == "hami.io/DynamicMIGReady"), None)


def test_twenty_kubelet_restarts_leave_pods_and_agent_as_they_were(lab: Lab) -> None:
    pods.create("stays", Want(), Want(memory=9500))
    pods.running("stays")
    before = as_instances(realized("stays"))
    threads = lab.node.agent.threads
    for _number in range(RESTARTS):
        registered = lab.node.agent_registrations()
        lab.kubelet.restart()
        wait_until("registered again", lambda r=registered: lab.node.agent_registrations() > r)
    pods.create("next", Want())
    pods.running("next", 90)
    assert_exist(lab, before | as_instances(realized("next")))
    assert pods.read("stays").status.phase == "Running"
    assert lab.node.agent.threads <= threads + 10
    wait_until("the Lease is held", lambda: holder() == NODE, 30)


def test_the_lease_and_the_condition_follow_the_agent(lab: Lab) -> None:
    wait_until("the Lease is held", lambda: holder() == NODE, 30)
    wait_until("the condition is true", lambda: condition().status == "True", 30)
    lab.node.agent.stop(signal.SIGTERM)
    try:
        assert holder() == ""
        assert (condition().status, condition().reason) == ("Unknown", "AgentStopped")
    finally:
        lab.node.start_agent()
    wait_until("the Lease is held again", lambda: holder() == NODE, 30)
    wait_until("the condition is true again", lambda: condition().status == "True", 30)


def test_no_pod_is_bound_to_a_node_whose_kubelet_is_dead_or_has_no_devices_yet(lab: Lab) -> None:
    """A kubelet fails what it finds bound before it has devices, and nothing makes it anew."""
    wait_until("the Lease is held", lambda: holder() == NODE, 30)
    for number in range(3):
        lab.kubelet.kill()
        wait_until("the agent says so", lambda: holder() == "", 10)
        wait_until("the node is closed", lambda: NODE in closed_nodes(lab), 10)
        pods.create(f"waits-{number}", Want())
        assert "NodeCapabilityStale" in pods.unschedulable(f"waits-{number}")
        lab.kubelet.restart()
        pods.running(f"waits-{number}", 90)
        pods.delete(f"waits-{number}", grace=0)


def test_kills_of_the_agent_during_a_burst_cost_no_instance_and_share_none(lab: Lab) -> None:
    with deployment("burst", 10):
        for _number in range(4):
            time.sleep(1.0)  # let the burst get under way; a kill must hit it somewhere
            lab.node.restart_agent()
        all_run(lab, "burst", 10, 240)
    wait_until("all is reclaimed", lambda: not lab.instances(), 60)


def test_failing_allocations_end_in_pods_that_run_and_leave_nothing(lab: Lab) -> None:
    lab.node.hardware.fail(CREATE, 23, times=2)
    lab.node.hardware.fail("nvmlGpuInstanceCreateComputeInstance", 999, times=2, skip=1)
    try:
        with deployment("unlucky", 3):
            all_run(lab, "unlucky", 3, 240)
            failed = of_app("unlucky", "Failed")
            assert failed
            assert all("nvml" in str(pod.status.message) for pod in failed)
            wait_until("an event says so", lambda: "MigAllocationFailed" in event_reasons(), 20)
    finally:
        lab.node.hardware.clear_faults()
    wait_until("all is reclaimed", lambda: not lab.instances(), 60)
