"""The status subresource and the object do not write each other's part."""

from __future__ import annotations

from tests.simulator.contract.conftest import Kube


def test_a_write_of_the_object_keeps_the_status(kube: Kube) -> None:
    document = kube.make_pod("a")
    document["status"]["phase"] = "Running"
    document["metadata"]["annotations"] = {"x": "1"}
    written = kube.client.replace(f"{kube.pods}/a", document)
    assert written["status"]["phase"] == "Pending"
    assert written["metadata"]["annotations"] == {"x": "1"}


def test_a_write_of_the_status_keeps_the_spec(kube: Kube) -> None:
    document = kube.make_pod("a")
    document["status"]["phase"] = "Running"
    document["spec"]["schedulerName"] = "other"
    written = kube.client.replace(f"{kube.pods}/a/status", document)
    assert written["status"]["phase"] == "Running"
    assert written["spec"]["schedulerName"] == "contract"


def test_a_write_of_the_status_may_change_annotations(kube: Kube) -> None:
    kube.make_pod("a")
    patch = {"metadata": {"annotations": {"x": "1"}}, "status": {"phase": "Running"}}
    written = kube.client.patch(f"{kube.pods}/a/status", patch)
    assert written["metadata"]["annotations"] == {"x": "1"}


def test_a_new_pod_is_pending_whatever_it_says(kube: Kube) -> None:
    document = kube.make_pod("a")
    assert document["status"]["phase"] == "Pending"
    assert document["status"]["qosClass"] == "BestEffort"


def test_a_node_keeps_the_status_it_is_created_with(kube: Kube) -> None:
    name = f"node-{kube.namespace}"
    node = {
        "metadata": {"name": name},
        "status": {"allocatable": {"nvidia.com/gpu": 14, "memory": "1024Mi"}},
    }
    kube.client.create("/api/v1/nodes", node)
    status = kube.client.get(f"/api/v1/nodes/{name}")["status"]
    kube.client.delete(f"/api/v1/nodes/{name}")
    assert status["allocatable"] == {"nvidia.com/gpu": "14", "memory": "1Gi"}


def test_a_node_is_cordoned_by_a_patch_of_its_spec(kube: Kube) -> None:
    path = f"/api/v1/nodes/node-{kube.namespace}"
    kube.client.create("/api/v1/nodes", {"metadata": {"name": f"node-{kube.namespace}"}})
    patched = kube.client.patch(path, {"spec": {"unschedulable": True}})
    kube.client.delete(path)
    assert patched["spec"]["unschedulable"] is True
