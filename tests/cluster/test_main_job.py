"""The main job on a real Kubernetes: reserve, bind, realize, hand over, reclaim."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.rest import ApiException

from tests.cluster import pods
from tests.cluster.lab import NAMESPACE, Lab
from tests.cluster.observed import as_instances, assert_exist, environment, realized
from tests.cluster.pods import Want
from tests.cluster.processes import wait_until


def test_a_pod_gets_the_instance_that_was_reserved_and_leaves_nothing_behind(lab: Lab) -> None:
    pods.create("one", Want())
    pod = pods.running("one")
    (record,) = realized("one")
    assert_exist(lab, as_instances([record]))
    assert environment(lab, pod, "c0") == record["migUUID"]
    assert pod.spec.scheduler_name == "hami-scheduler"

    settled = pods.read("one").metadata
    assert settled.annotations["hami.io/bind-phase"] == "success"
    node_name = pod.spec.node_name
    assert settled.annotations["hami.io/vgpu-node"] == node_name
    assert settled.labels["hami.io/vgpu-node"] == node_name
    wait_until("the lock is given back", lambda: not locked(node_name), 20)

    pods.delete("one")
    wait_until("the Pod is gone", lambda: pods.is_gone("one"))
    wait_until("its instance is gone", lambda: not lab.instances(), 20)

    uid = pod.metadata.uid
    end = "node-agent: reclaimed instance"
    wait_until("its story is told to the end", lambda: end in lab.story(uid), 20)
    story = lab.story(uid)
    roles = [role for role, _ in groupby(line.split(":")[0] for line in story)]
    assert roles[-2:] == ["extender", "node-agent"], story
    assert any("realized instance" in line for line in story)


def locked(node_name: str) -> bool:
    node = client.CoreV1Api().read_node(node_name)
    return "hami.io/mutex.lock" in (node.metadata.annotations or {})


def test_beside_another_owner_nothing_changes_until_its_sign_has_gone(lab: Lab) -> None:
    pods.create("runs", Want())
    node = pods.running("runs").spec.node_name
    before = lab.instances()
    label(node, "all-disabled")
    try:
        pods.create("waits", Want())
        told = pods.unschedulable("waits")
        assert "NodeOtherMigOwner" in told
        assert "nvidia.com/mig.config=all-disabled" in told
        pods.delete("runs")
        wait_until("the Pod is gone", lambda: pods.is_gone("runs"))
        wait_until("the agent says so", lambda: "OtherOwner" in mig_ready(node), 30)
        assert lab.instances() == before
    finally:
        label(node, None)
    pods.running("waits")
    wait_until("only its own is there", lambda: len(lab.instances()) == 1, 60)


def label(node_name: str, config: str | None) -> None:
    labels = {"metadata": {"labels": {"nvidia.com/mig.config": config}}}
    client.CoreV1Api().patch_node(node_name, labels)


def mig_ready(node_name: str) -> str:
    node = client.CoreV1Api().read_node(node_name)
    found = [c for c in node.status.conditions if c.type == "hami.io/DynamicMIGReady"]
    return " ".join(f"{c.status} {c.reason}" for c in found)


def test_the_metric_names_the_realized_instance(lab: Lab) -> None:
    pods.create("seen", Want())
    pods.running("seen")
    (record,) = realized("seen")
    uuid = record["migUUID"]
    text = wait_until("it is there", lambda: lab.metrics() if uuid in lab.metrics() else "", 20)
    (line,) = (
        line
        for line in text.splitlines()
        if line.startswith("hami_node_gpu_mig_instance_info{") and uuid in line
    )
    assert f'device_uuid="{record["gpuUUID"]}"' in line
    assert f'placement_start="{record["placement"]["start"]}"' in line
    assert 'zone="vGPU"' in line


def test_two_devices_of_one_container_are_both_handed_over(lab: Lab) -> None:
    pods.create("pair", Want(devices=2))
    pod = pods.running("pair")
    records = realized("pair")
    assert [(r["containerIndex"], r["deviceIndex"]) for r in records] == [(0, 0), (0, 1)]
    assert_exist(lab, as_instances(records))
    assert environment(lab, pod, "c0") == ",".join(r["migUUID"] for r in records)


def test_containers_get_their_own_devices_and_one_without_gpu_sees_none(
    lab: Lab, a100: str
) -> None:
    only = {"nvidia.com/use-gpuuuid": a100}
    pods.create("three", Want(), Want(devices=0), Want(memory=9500), annotations=only)
    pod = pods.running("three")
    records = realized("three")
    assert [(r["containerIndex"], r["profile"]) for r in records] == [(0, "1g.5gb"), (2, "2g.10gb")]
    assert environment(lab, pod, "c0") == records[0]["migUUID"]
    assert environment(lab, pod, "c1") == "void"
    assert environment(lab, pod, "c2") == records[1]["migUUID"]
    assert_exist(lab, as_instances(records))


def test_seven_pods_fill_an_a100_and_the_eighth_waits_with_a_reason(lab: Lab, a100: str) -> None:
    only = {"nvidia.com/use-gpuuuid": a100}
    for number in range(7):
        pods.create(f"fill-{number}", Want(), annotations=only)
    records: list[dict[str, Any]] = []
    for number in range(7):
        pods.running(f"fill-{number}", 120)
        records += realized(f"fill-{number}")
    assert {record["placement"]["start"] for record in records} == set(range(7))
    assert_exist(lab, as_instances(records))

    pods.create("eighth", Want(), annotations=only)
    reason = pods.unschedulable("eighth")
    assert re.search(r"1/\d+ CardMigTopologyInfeasible", reason)
    assert "CardUuidMismatch" in reason


def test_a_waiting_pod_starts_by_itself_as_soon_as_there_is_space(lab: Lab, a100: str) -> None:
    only = {"nvidia.com/use-gpuuuid": a100}
    pods.create("whole", Want(memory=None), annotations=only)
    pods.running("whole")
    pods.create("waits", Want(memory=19000), annotations=only)
    assert "CardInsufficientMemory" in pods.unschedulable("waits")

    pods.delete("whole")
    pods.running("waits")
    (record,) = realized("waits")
    assert_exist(lab, as_instances([record]))


def test_a_pod_that_completes_gives_its_instance_back(lab: Lab) -> None:
    pods.create("done", Want(args=["exit", "0"]))
    wait_until("it succeeds", lambda: pods.read("done").status.phase == "Succeeded")
    wait_until("its instance is gone", lambda: not lab.instances(), 20)
    assert not pods.is_gone("done")


def test_a_pod_that_fails_gives_its_instance_back(lab: Lab) -> None:
    pods.create("broken", Want(args=["exit", "3"]))
    wait_until("it fails", lambda: pods.read("broken").status.phase == "Failed")
    wait_until("its instance is gone", lambda: not lab.instances(), 20)


def test_a_deployments_pods_without_names_are_admitted_and_run(lab: Lab) -> None:
    pod = pods.manifest("unused", Want())
    template = {
        "metadata": {"labels": {"app": "d"}, "annotations": pod["metadata"]["annotations"]},
        "spec": pod["spec"] | {"restartPolicy": "Always"},
    }
    apps = client.AppsV1Api()
    apps.create_namespaced_deployment(
        NAMESPACE,
        {
            "metadata": {"name": "d"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "d"}},
                "template": template,
            },
        },
    )
    try:
        wait_until(
            "both replicas are available",
            lambda: apps.read_namespaced_deployment("d", NAMESPACE).status.available_replicas == 2,
            90,
        )
        listed = client.CoreV1Api().list_namespaced_pod(NAMESPACE).items
        records = [record for pod in listed for record in realized(pod.metadata.name)]
        assert len(as_instances(records)) == 2
        assert_exist(lab, as_instances(records))
    finally:
        apps.delete_namespaced_deployment("d", NAMESPACE)


@pytest.mark.parametrize("memory", ["4500Mi", "2147483648"])
def test_memory_that_makes_no_sense_is_refused_when_the_pod_is_created(
    lab: Lab, memory: str
) -> None:
    with pytest.raises(ApiException) as caught:
        pods.create("wrong", Want(memory=memory))
    assert "nvidia.com/gpumem" in str(caught.value.body)
    assert memory in str(caught.value.body)
    assert not lab.instances()


def test_more_memory_than_any_gpu_has_is_refused_with_the_sizes_there_are(lab: Lab) -> None:
    with pytest.raises(ApiException) as caught:
        pods.create("huge", Want(memory=500000))
    assert "500000 MiB is not allowed" in str(caught.value.body)
    assert "allowed: 1g." in str(caught.value.body)
    assert not lab.instances()
