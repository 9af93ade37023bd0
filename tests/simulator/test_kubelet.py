"""A simulated kubelet speaks the device-plugin API and runs Pods by its rules."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest

from hami_web.simulator.cluster import ContainerSpec, PodSpec, SimulatedCluster, wait_until
from hami_web.simulator.documents import JsonObject
from hami_web.simulator.kubelet import RUN_SECONDS, STOP_SECONDS, SimulatedKubelet
from tests.simulator.plugins import ScriptedPlugin


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with SimulatedCluster(["n1"]) as running:
        yield running


@pytest.fixture
def kubelet(cluster: SimulatedCluster) -> SimulatedKubelet:
    return cluster.kubelets["n1"]


@pytest.fixture
def plugin(cluster: SimulatedCluster, kubelet: SimulatedKubelet) -> Iterator[ScriptedPlugin]:
    with ScriptedPlugin(kubelet.plugin_folder, 4) as registered:
        wait_until(lambda: allocatable(cluster) == "4")
        yield registered


def allocatable(cluster: SimulatedCluster) -> str:
    return cluster.client.get("/api/v1/nodes/n1")["status"]["allocatable"].get("nvidia.com/gpu", "")


def run(cluster: SimulatedCluster, name: str, *containers: ContainerSpec, **more: str) -> str:
    """Create a Pod, bind it and return its UID."""
    spec = PodSpec(name, containers or (ContainerSpec(gpu=1),), annotations=more)
    uid = cluster.create_pod(spec)["metadata"]["uid"]
    body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}}
    cluster.client.create(f"/api/v1/namespaces/default/pods/{name}/binding", body)
    return uid


def wait_for_phase(cluster: SimulatedCluster, name: str, phase: str) -> JsonObject:
    def status() -> JsonObject | None:
        found = (cluster.pod(name) or {}).get("status", {})
        return found if found.get("phase") == phase else None

    return wait_until(status)


def test_the_node_is_ready_and_offers_the_healthy_devices(
    cluster: SimulatedCluster, plugin: ScriptedPlugin
) -> None:
    plugin.set_health("d0", "Unhealthy")
    wait_until(lambda: allocatable(cluster) == "3")
    status = cluster.client.get("/api/v1/nodes/n1")["status"]
    assert status["capacity"]["nvidia.com/gpu"] == "4"
    assert [(c["type"], c["status"]) for c in status["conditions"]] == [("Ready", "True")]


def test_a_bound_pod_is_allocated_and_runs_with_the_injected_environment(
    cluster: SimulatedCluster, kubelet: SimulatedKubelet, plugin: ScriptedPlugin
) -> None:
    uid = run(cluster, "a", ContainerSpec(gpu=2))
    status = wait_for_phase(cluster, "a", "Running")
    (ids,) = plugin.allocated
    assert len(set(ids)) == 2
    assert kubelet.container_env(uid, "main") == {"NVIDIA_VISIBLE_DEVICES": ",".join(sorted(ids))}
    assert status["containerStatuses"][0]["state"]["running"]["startedAt"]


def test_each_container_with_the_resource_is_allocated_once_in_order(
    cluster: SimulatedCluster, kubelet: SimulatedKubelet, plugin: ScriptedPlugin
) -> None:
    containers = (ContainerSpec("a", gpu=2), ContainerSpec("b"), ContainerSpec("c", gpu=1))
    uid = run(cluster, "pod", *containers)
    wait_for_phase(cluster, "pod", "Running")
    assert [len(ids) for ids in plugin.allocated] == [2, 1]
    assert kubelet.container_env(uid, "b") == {}
    assert not set(plugin.allocated[0]) & set(plugin.allocated[1])


def test_app_containers_reuse_what_init_containers_hold(
    cluster: SimulatedCluster, plugin: ScriptedPlugin
) -> None:
    containers = (ContainerSpec("warm", gpu=1, init=True), ContainerSpec("main", gpu=2))
    run(cluster, "pod", *containers)
    wait_for_phase(cluster, "pod", "Running")
    warm, main = plugin.allocated
    assert set(warm) < set(main)


def test_what_a_sidecar_holds_is_nobody_elses(
    cluster: SimulatedCluster, plugin: ScriptedPlugin
) -> None:
    containers = (ContainerSpec("side", gpu=1, sidecar=True), ContainerSpec("main", gpu=1))
    run(cluster, "pod", *containers)
    wait_for_phase(cluster, "pod", "Running")
    side, main = plugin.allocated
    assert set(side).isdisjoint(main)


def test_a_failing_allocate_ends_the_pod_with_the_message_word_for_word(
    cluster: SimulatedCluster, plugin: ScriptedPlugin
) -> None:
    plugin.refusal = (grpc.StatusCode.FAILED_PRECONDITION, "no reservation for this Pod")
    run(cluster, "a")
    status = wait_for_phase(cluster, "a", "Failed")
    assert status["reason"] == "UnexpectedAdmissionError"
    assert status["message"] == (
        "Pod Allocate failed due to rpc error: code = FailedPrecondition "
        "desc = no reservation for this Pod, which is unexpected"
    )


def test_a_node_without_room_rejects_the_pod(
    cluster: SimulatedCluster, plugin: ScriptedPlugin
) -> None:
    run(cluster, "a", ContainerSpec(gpu=3))
    wait_for_phase(cluster, "a", "Running")
    run(cluster, "b", ContainerSpec(gpu=2))
    assert wait_for_phase(cluster, "b", "Failed")["reason"] == "OutOfnvidia.com/gpu"


def test_the_preferred_devices_are_chosen(
    cluster: SimulatedCluster, kubelet: SimulatedKubelet
) -> None:
    plugin = ScriptedPlugin(kubelet.plugin_folder, 4)
    plugin.prefers = lambda available: ["d3"]
    with plugin:
        wait_until(lambda: allocatable(cluster) == "4")
        run(cluster, "a")
        wait_for_phase(cluster, "a", "Running")
        assert plugin.allocated == [["d3"]]


def test_devices_are_free_again_when_the_pod_is_over(
    cluster: SimulatedCluster, kubelet: SimulatedKubelet, plugin: ScriptedPlugin
) -> None:
    uid = run(cluster, "a", ContainerSpec(gpu=4))
    wait_for_phase(cluster, "a", "Running")
    kubelet.complete("default", "a")
    wait_for_phase(cluster, "a", "Succeeded")
    assert kubelet.container_env(uid, "main") is None
    run(cluster, "b", ContainerSpec(gpu=4))
    wait_for_phase(cluster, "b", "Running")


def test_a_pod_completes_after_its_run_time(
    cluster: SimulatedCluster, plugin: ScriptedPlugin
) -> None:
    run(cluster, "a", **{RUN_SECONDS: "0.2"})
    status = wait_for_phase(cluster, "a", "Succeeded")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


def test_a_pod_that_ends_with_a_code_has_failed(
    cluster: SimulatedCluster, kubelet: SimulatedKubelet, plugin: ScriptedPlugin
) -> None:
    run(cluster, "a")
    wait_for_phase(cluster, "a", "Running")
    kubelet.complete("default", "a", exit_code=3)
    status = wait_for_phase(cluster, "a", "Failed")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


def test_a_deleted_pod_keeps_its_devices_until_its_containers_ended(
    cluster: SimulatedCluster, kubelet: SimulatedKubelet, plugin: ScriptedPlugin
) -> None:
    uid = run(cluster, "a", **{STOP_SECONDS: "0.4"})
    wait_for_phase(cluster, "a", "Running")
    cluster.delete_pod("a")
    assert cluster.pod("a")["metadata"]["deletionTimestamp"]
    assert kubelet.container_env(uid, "main")
    wait_until(lambda: cluster.pod("a") is None)
    assert kubelet.container_env(uid, "main") is None


def test_a_second_deletion_with_less_grace_ends_the_pod_sooner(
    cluster: SimulatedCluster, plugin: ScriptedPlugin
) -> None:
    run(cluster, "a", **{STOP_SECONDS: "30"})
    wait_for_phase(cluster, "a", "Running")
    cluster.delete_pod("a")
    cluster.delete_pod("a", grace_seconds=1)
    wait_until(lambda: cluster.pod("a") is None, timeout=5)


def test_a_pod_deleted_by_force_frees_its_devices(
    cluster: SimulatedCluster, kubelet: SimulatedKubelet, plugin: ScriptedPlugin
) -> None:
    uid = run(cluster, "a")
    wait_for_phase(cluster, "a", "Running")
    cluster.delete_pod("a", grace_seconds=0)
    wait_until(lambda: kubelet.container_env(uid, "main") is None)


def test_a_restart_ends_streams_and_sockets_and_keeps_what_runs(
    cluster: SimulatedCluster, kubelet: SimulatedKubelet, plugin: ScriptedPlugin
) -> None:
    uid = run(cluster, "a")
    wait_for_phase(cluster, "a", "Running")
    kubelet.restart()
    assert plugin.streams_ended.wait(5)
    assert not (kubelet.plugin_folder / "test.sock").exists()
    assert allocatable(cluster) == "4"
    assert kubelet.container_env(uid, "main")
    assert len(plugin.allocated) == 1


def test_a_pod_that_comes_before_the_plugin_is_back_fails(
    cluster: SimulatedCluster, kubelet: SimulatedKubelet, plugin: ScriptedPlugin
) -> None:
    kubelet.restart()
    run(cluster, "a")
    status = wait_for_phase(cluster, "a", "Failed")
    assert status["reason"] == "UnexpectedAdmissionError"
    assert "no healthy devices present" in status["message"]


def test_a_resource_that_no_plugin_ever_offered_is_ignored(
    cluster: SimulatedCluster, kubelet: SimulatedKubelet
) -> None:
    uid = run(cluster, "a")
    wait_for_phase(cluster, "a", "Running")
    assert kubelet.container_env(uid, "main") == {}


def test_a_plugin_that_registers_again_is_followed_on_its_new_socket(
    cluster: SimulatedCluster, kubelet: SimulatedKubelet, plugin: ScriptedPlugin
) -> None:
    with ScriptedPlugin(kubelet.plugin_folder, 7, endpoint="second.sock") as second:
        wait_until(lambda: allocatable(cluster) == "7")
        assert plugin.streams_ended.wait(5)
        run(cluster, "a")
        wait_for_phase(cluster, "a", "Running")
        assert (len(plugin.allocated), len(second.allocated)) == (0, 1)


def test_a_plugin_that_went_away_leaves_nothing_allocatable(
    cluster: SimulatedCluster, kubelet: SimulatedKubelet
) -> None:
    with ScriptedPlugin(kubelet.plugin_folder, 2):
        wait_until(lambda: allocatable(cluster) == "2")
    wait_until(lambda: allocatable(cluster) == "0")


def test_a_registration_of_another_version_is_refused(
    kubelet: SimulatedKubelet, plugin: ScriptedPlugin
) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        plugin.register(version="v1alpha")
    assert "v1alpha" in caught.value.details()
