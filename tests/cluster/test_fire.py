"""Scheduling while leaders die, the API server restarts and users interfere."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest
from kubernetes import client
from kubernetes.client.rest import ApiException
from urllib3.exceptions import HTTPError

from tests.cluster import pods
from tests.cluster.lab import NAMESPACE, NODE, SYSTEM, Lab, Process, free_port, wait_until
from tests.cluster.pods import Want

ALLOCATIONS = "hami.io/vgpu-mig-allocations"


@pytest.fixture
def standby(lab: Lab) -> Iterator[Process]:
    """A second replica behind the same Service; the first leads again afterwards."""
    port = free_port()
    replica = lab.replica("extender-b", port)
    replica.start()
    lab.service.ports.append(port)
    wait_until("the standby is up", lambda: lab.answers(port, "/readyz?standby=ok"))
    yield replica
    if not lab.extender.runs:
        lab.extender.start()
        wait_until("it is up", lambda: lab.answers(lab.port, "/readyz?standby=ok"))
    replica.stop()
    lab.service.ports.remove(port)
    wait_until("the first leads again", lambda: lab.answers(lab.port, "/readyz"), 30)
    wait_until("and is reached", lambda: lab.answers(lab.service.port, "/readyz"))


def placements(lab: Lab) -> list[tuple[str, int, int]]:
    """Reservations of all Pods, on memory slices that no two of them share."""
    found = [
        (r["gpuUUID"], r["placement"]["start"], r["placement"]["size"])
        for pod in client.CoreV1Api().list_namespaced_pod(NAMESPACE).items
        if pod.status.phase not in ("Succeeded", "Failed")
        for r in pods.allocations(pod)
    ]
    taken = [(gpu, s) for gpu, start, size in found for s in range(start, start + size)]
    assert len(taken) == len(set(taken)), f"shared memory slices: {sorted(found)}"
    return found


def started(names: list[str], seconds: float = 60) -> None:
    for name in names:
        pods.running(name, seconds)


def test_reservations_are_signed_and_the_agent_accepts_them(lab: Lab) -> None:
    pods.create("signed", Want())
    pod = pods.running("signed")
    assert pod.metadata.annotations["hami.io/vgpu-mig-signature"].startswith("v1.k1.")


def test_a_stopped_leader_is_followed_while_pods_come(lab: Lab, standby: Process) -> None:
    names = [f"stop-{number}" for number in range(6)]
    for name in names[:3]:
        pods.create(name, Want(), scheduler="hami-scheduler")
    stopped_at = time.monotonic()
    lab.extender.stop()
    wait_until("the standby leads", lambda: lab.answers(lab.service.port, "/readyz"), 10)
    assert time.monotonic() - stopped_at < 4
    for name in names[3:]:
        pods.create(name, Want(), scheduler="hami-scheduler")
    started(names)
    assert len(placements(lab)) == len(names)


def test_a_killed_leader_is_followed_within_fifteen_seconds(lab: Lab, standby: Process) -> None:
    names = [f"kill-{number}" for number in range(6)]
    for name in names[:3]:
        pods.create(name, Want(), scheduler="hami-scheduler")
    killed_at = time.monotonic()
    lab.extender.stop(signal.SIGKILL)
    for name in names[3:]:
        pods.create(name, Want(), scheduler="hami-scheduler")
    wait_until("the standby leads", lambda: lab.answers(lab.service.port, "/readyz"), 20)
    assert time.monotonic() - killed_at < 15
    started(names, 90)
    assert len(placements(lab)) == len(names)
    lease = client.CoordinationV1Api().read_namespaced_lease("hami-extender", SYSTEM)
    assert lease.spec.holder_identity.startswith("extender-b_")


def test_every_pod_is_scheduled_while_the_api_server_restarts(lab: Lab) -> None:
    """A Pod whose Allocate falls into the gap fails on its node, with that reason; none else."""
    names = [f"load-{number}" for number in range(8)]
    for name in names[:4]:
        pods.create(name, Want(), scheduler="hami-scheduler")
    lab.restart_api_server()

    def created(name: str) -> bool:
        try:
            pods.create(name, Want(), scheduler="hami-scheduler")
        except ApiException as error:
            return error.status == 409
        except HTTPError:
            return False
        return True

    for name in names[4:]:
        wait_until(f"Pod {name} is taken", lambda name=name: created(name), 60)  # type: ignore[misc]

    def ended(name: str) -> str:
        status = pods.read(name).status
        return str(status.phase) if status.phase in ("Running", "Failed") else ""

    for name in names:
        if wait_until(f"{name} runs", lambda name=name: ended(name), 60) == "Failed":  # type: ignore[misc]
            assert "no answer" in pods.read(name).status.message
    running = [name for name in names if ended(name) == "Running"]
    assert len(running) >= 5
    assert len(placements(lab)) == len(running)


def test_eight_pods_at_once_run_within_five_seconds(lab: Lab) -> None:
    names = [f"burst-{number}" for number in range(8)]
    began = time.monotonic()
    for name in names:
        pods.create(name, Want())
    wait_until(
        "all have their instances",
        lambda: sum(r["migUUID"] != "" for n in names for r in realized_of(n)) == 8,
        30,
    )
    assert time.monotonic() - began < 5
    started(names)


def realized_of(name: str) -> list[dict[str, str]]:
    return [r for r in pods.allocations(pods.read(name)) if r.get("migUUID")]


def test_a_waiting_pod_runs_within_two_seconds_after_a_reservation_ends(lab: Lab) -> None:
    fillers = [f"fill-{gpu.get('index', 0)}" for gpu in lab.published()]
    for name in fillers:
        pods.create(name, Want(memory=None))
    started(fillers)
    pods.create("next", Want(memory=None))
    assert "Card" in pods.unschedulable("next")
    pods.delete(fillers[0], grace=0)
    wait_until("it is gone", lambda: pods.is_gone(fillers[0]))
    freed_at = time.monotonic()
    wait_until("it is bound", lambda: pods.read("next").spec.node_name, 10)
    assert time.monotonic() - freed_at < 2
    pods.running("next")


def test_a_tenant_can_neither_bring_nor_edit_a_reservation(lab: Lab) -> None:
    pods.create("forged", Want(), annotations={ALLOCATIONS: "[{", "hami.io/vgpu-node": NODE})
    pod = pods.running("forged")
    assert pods.allocations(pod)[0]["migUUID"]
    change = {"metadata": {"annotations": {ALLOCATIONS: "[{"}}}
    with pytest.raises(ApiException) as caught:
        client.CoreV1Api().patch_namespaced_pod("forged", NAMESPACE, change)
    assert f"metadata.annotations[{ALLOCATIONS}]" in str(caught.value.body)


def test_a_dead_agent_takes_no_new_pod_until_it_is_back(lab: Lab) -> None:
    lab.agent.stop()
    try:
        pods.create("patient", Want())
        assert "NodeCapabilityStale" in pods.unschedulable("patient")
        assert pods.read("patient").spec.node_name is None
    finally:
        lab.start_agent()
    pods.running("patient", 30)


def test_a_pod_that_slipped_past_webhook_and_scheduler_fails_with_a_reason(lab: Lab) -> None:
    api = client.CoreV1Api()
    document = pods.manifest("slipped", Want())
    document["spec"]["nodeName"] = NODE
    with pytest.raises(ApiException, match=r"spec\.nodeName"):
        api.create_namespaced_pod(NAMESPACE, document)

    def is_let_through() -> bool:
        try:
            api.create_namespaced_pod(NAMESPACE, document)
        except ApiException:
            return False
        return True

    api.patch_namespace(NAMESPACE, {"metadata": {"labels": {"hami.io/webhook": "ignore"}}})
    try:
        wait_until("the namespace is exempted", is_let_through, 10)
    finally:
        api.patch_namespace(NAMESPACE, {"metadata": {"labels": {"hami.io/webhook": None}}})
    wait_until("it fails", lambda: pods.read("slipped").status.phase == "Failed", 30)
    assert pods.read("slipped").status.reason == "UnexpectedAdmissionError"
    assert not lab.instances()

    def is_watched_again() -> bool:
        try:
            api.create_namespaced_pod(NAMESPACE, document, dry_run="All")
        except ApiException as error:
            return "spec.nodeName" in str(error.body)
        return False

    wait_until("the webhook is asked again", is_watched_again, 10)
