"""The scheduler loop calls an extender as kube-scheduler does."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from hami_web.simulator.cluster import ContainerSpec, PodSpec, SimulatedCluster, wait_until
from hami_web.simulator.documents import JsonObject
from hami_web.simulator.extender import ExtenderConfig
from hami_web.simulator.scheduler import SchedulerConfig
from tests.simulator.extenders import ScriptedExtender, refuse_all

PLAIN = (ContainerSpec(),)


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with SimulatedCluster(["n1", "n2"]) as running:
        yield running


@pytest.fixture
def extender(cluster: SimulatedCluster) -> Iterator[ScriptedExtender]:
    with ScriptedExtender(cluster.endpoint) as scripted:
        yield scripted


def start(cluster: SimulatedCluster, extender: ScriptedExtender, **config: object) -> None:
    cluster.start_scheduler(SchedulerConfig(ExtenderConfig(extender.url, **config)))


def node_of(cluster: SimulatedCluster, name: str) -> str:
    return (cluster.pod(name) or {}).get("spec", {}).get("nodeName", "")


def scheduled_message(cluster: SimulatedCluster, name: str) -> str:
    conditions = (cluster.pod(name) or {}).get("status", {}).get("conditions", [])
    return next((c.get("message", "") for c in conditions if c["type"] == "PodScheduled"), "")


def test_a_pod_is_filtered_and_bound_by_the_extender(
    cluster: SimulatedCluster, extender: ScriptedExtender
) -> None:
    extender.annotations = {"hami.io/vgpu-node": "n1"}
    start(cluster, extender)
    made = cluster.create_pod(PodSpec("a"))
    wait_until(lambda: node_of(cluster, "a") == "n1")
    assert extender.filters[0]["NodeNames"] == ["n1", "n2"]
    assert extender.binds == [
        {
            "PodName": "a",
            "PodNamespace": "default",
            "PodUID": made["metadata"]["uid"],
            "Node": "n1",
        }
    ]
    assert cluster.pod("a")["metadata"]["annotations"] == {"hami.io/vgpu-node": "n1"}


def test_arguments_have_the_recorded_shape(
    cluster: SimulatedCluster, extender: ScriptedExtender
) -> None:
    start(cluster, extender)
    cluster.create_pod(PodSpec("a"))
    wait_until(lambda: extender.filters)
    (arguments,) = extender.filters
    assert list(arguments) == ["Pod", "Nodes", "NodeNames"]
    assert arguments["Nodes"] is None
    assert list(arguments["Pod"]) == ["metadata", "spec", "status"]
    assert arguments["Pod"]["spec"]["containers"][0]["resources"] == {
        "limits": {"nvidia.com/gpu": "1"},
        "requests": {"nvidia.com/gpu": "1"},
    }


def test_full_nodes_are_sent_where_the_extender_has_no_cache(
    cluster: SimulatedCluster, extender: ScriptedExtender
) -> None:
    def last(arguments: JsonObject) -> JsonObject:
        return {"Nodes": {"items": arguments["Nodes"]["items"][-1:]}}

    extender.decide = last
    start(cluster, extender, node_cache_capable=False)
    cluster.create_pod(PodSpec("a"))
    wait_until(lambda: node_of(cluster, "a") == "n2")
    assert extender.filters[0]["NodeNames"] is None


def test_refused_nodes_are_counted_in_the_condition(
    cluster: SimulatedCluster, extender: ScriptedExtender
) -> None:
    extender.decide = refuse_all
    start(cluster, extender)
    cluster.create_pod(PodSpec("a"))
    text = "0/2 nodes are available: 2 CardMigTopologyInfeasible."
    wait_until(lambda: scheduled_message(cluster, "a") == text)


def test_a_refused_pod_is_tried_twice_and_then_waits(
    cluster: SimulatedCluster, extender: ScriptedExtender
) -> None:
    extender.decide = refuse_all
    start(cluster, extender)
    cluster.create_pod(PodSpec("a"))
    wait_until(lambda: len(extender.filters) == 2)
    time.sleep(0.3)
    assert len(extender.filters) == 2


def test_an_annotation_makes_a_waiting_pod_tried_at_once(
    cluster: SimulatedCluster, extender: ScriptedExtender
) -> None:
    extender.decide = refuse_all
    start(cluster, extender)
    cluster.create_pod(PodSpec("a"))
    wait_until(lambda: len(extender.filters) == 2)
    extender.decide = lambda arguments: {"NodeNames": ["n2"]}
    patched = time.monotonic()
    patch = {"metadata": {"annotations": {"hami.io/wake": "1"}}}
    cluster.client.patch("/api/v1/namespaces/default/pods/a", patch)
    wait_until(lambda: node_of(cluster, "a") == "n2")
    assert time.monotonic() - patched < 0.9  # sooner than the back-off of two failures


def test_a_deleted_pod_lets_waiting_ones_be_tried_after_their_back_off(
    cluster: SimulatedCluster, extender: ScriptedExtender
) -> None:
    start(cluster, extender)
    cluster.create_pod(PodSpec("first"))
    wait_until(lambda: node_of(cluster, "first"))
    extender.decide = refuse_all
    cluster.create_pod(PodSpec("second"))
    wait_until(lambda: len(extender.filters) == 3)
    cluster.delete_pod("first", grace_seconds=0)
    wait_until(lambda: len(extender.filters) > 3, timeout=4)


def test_an_extender_error_is_retried_after_the_back_off(
    cluster: SimulatedCluster, extender: ScriptedExtender
) -> None:
    extender.decide = lambda arguments: {"Error": "not the leader"}
    start(cluster, extender)
    cluster.create_pod(PodSpec("a"))
    wait_until(lambda: scheduled_message(cluster, "a") == "not the leader")
    extender.decide = lambda arguments: {"NodeNames": ["n1"]}
    wait_until(lambda: node_of(cluster, "a"), timeout=5)


def test_a_failed_bind_is_filtered_again(
    cluster: SimulatedCluster, extender: ScriptedExtender
) -> None:
    extender.bind_error = "node lock contention"
    start(cluster, extender)
    cluster.create_pod(PodSpec("a"))
    wait_until(lambda: "node lock contention" in scheduled_message(cluster, "a"))
    extender.bind_error = ""
    wait_until(lambda: node_of(cluster, "a"), timeout=5)
    assert len(extender.filters) >= 2


def test_cordoned_and_unready_nodes_are_not_offered(
    cluster: SimulatedCluster, extender: ScriptedExtender
) -> None:
    cluster.client.patch("/api/v1/nodes/n1", {"spec": {"unschedulable": True}})
    cluster.kubelets["n2"].set_ready(ready=False)
    start(cluster, extender)
    cluster.create_pod(PodSpec("a"))
    text = "0/2 nodes are available: 1 node(s) were not ready, 1 node(s) were unschedulable."
    wait_until(lambda: scheduled_message(cluster, "a") == text)
    assert extender.filters == []
    cluster.client.patch("/api/v1/nodes/n1", {"spec": {"unschedulable": None}})
    wait_until(lambda: node_of(cluster, "a") == "n1")


def test_pods_without_a_managed_resource_are_bound_without_the_extender(
    cluster: SimulatedCluster, extender: ScriptedExtender
) -> None:
    start(cluster, extender)
    cluster.create_pod(PodSpec("a", PLAIN))
    wait_until(lambda: node_of(cluster, "a"))
    assert (extender.filters, extender.binds) == ([], [])


def test_pods_of_other_schedulers_are_left_alone(
    cluster: SimulatedCluster, extender: ScriptedExtender
) -> None:
    cluster.create_pod(PodSpec("other", scheduler_name="default-scheduler"))
    start(cluster, extender)
    cluster.create_pod(PodSpec("a"))
    wait_until(lambda: node_of(cluster, "a"))
    assert [arguments["Pod"]["metadata"]["name"] for arguments in extender.filters] == ["a"]


def test_the_highest_priority_is_tried_first_then_the_oldest(
    cluster: SimulatedCluster, extender: ScriptedExtender
) -> None:
    for name, priority in (("low", 0), ("later", 0), ("high", 10)):
        cluster.create_pod(PodSpec(name, priority=priority))
    start(cluster, extender)
    wait_until(lambda: len(extender.binds) == 3)
    tried = [arguments["Pod"]["metadata"]["name"] for arguments in extender.filters]
    assert (tried[0], sorted(tried[1:])) == ("high", ["later", "low"])


def test_connections_to_the_extender_are_kept(
    cluster: SimulatedCluster, extender: ScriptedExtender
) -> None:
    start(cluster, extender)
    for number in range(10):
        cluster.create_pod(PodSpec(f"p{number}"))
        wait_until(lambda number=number: node_of(cluster, f"p{number}"))
    assert extender.connections <= 3


def test_an_unreachable_extender_is_told_and_retried(
    cluster: SimulatedCluster, extender: ScriptedExtender
) -> None:
    config = ExtenderConfig("http://127.0.0.1:9/prefix", timeout=1)
    cluster.start_scheduler(SchedulerConfig(config))
    cluster.create_pod(PodSpec("a"))
    text = 'Post "http://127.0.0.1:9/prefix/filter": '
    wait_until(lambda: scheduled_message(cluster, "a").startswith(text))


def test_a_node_that_the_extender_was_not_asked_about_is_an_error(
    cluster: SimulatedCluster, extender: ScriptedExtender
) -> None:
    extender.decide = lambda arguments: {"nodenames": ["elsewhere"]}
    start(cluster, extender)
    cluster.create_pod(PodSpec("a"))
    wait_until(lambda: "claims a filtered node 'elsewhere'" in scheduled_message(cluster, "a"))


def test_a_node_selector_is_respected(
    cluster: SimulatedCluster, extender: ScriptedExtender
) -> None:
    start(cluster, extender)
    selector = {"kubernetes.io/hostname": "n2"}
    cluster.create_pod(PodSpec("a", node_selector=selector))
    wait_until(lambda: node_of(cluster, "a") == "n2")
    assert extender.filters[0]["NodeNames"] == ["n2"]
