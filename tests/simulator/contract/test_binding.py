"""Binding a Pod: node and annotations in one write, once."""

from __future__ import annotations

import pytest

from hami_web.simulator.client import ApiError
from tests.simulator.contract.conftest import Kube


def test_binding_sets_node_and_annotations_in_one_write(kube: Kube) -> None:
    made = kube.make_pod("a", annotations={"kept": "1", "hami.io/changed": "old"})
    params = {"resourceVersion": made["metadata"]["resourceVersion"], "timeoutSeconds": "1"}
    kube.bind("a", annotations={"hami.io/changed": "new", "hami.io/added": "2"})
    watch = kube.client.watch(kube.pods, params)
    (event,) = list(watch)
    watch.close()
    assert event["object"]["spec"]["nodeName"] == "n1"
    assert event["object"]["metadata"]["annotations"] == {
        "kept": "1",
        "hami.io/changed": "new",
        "hami.io/added": "2",
    }


def test_binding_answers_with_a_status(kube: Kube) -> None:
    kube.make_pod("a")
    answer = kube.bind("a")
    assert (answer["kind"], answer["status"], answer["code"]) == ("Status", "Success", 201)


def test_binding_makes_the_pod_scheduled(kube: Kube) -> None:
    kube.make_pod("a")
    kube.bind("a")
    (condition,) = kube.client.get(f"{kube.pods}/a")["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")


def test_labels_of_a_binding_are_dropped(kube: Kube) -> None:
    kube.make_pod("a")
    kube.bind("a", labels={"x": "y"})
    assert "labels" not in kube.client.get(f"{kube.pods}/a")["metadata"]


def test_a_bound_pod_is_not_bound_again(kube: Kube) -> None:
    kube.make_pod("a")
    kube.bind("a")
    with pytest.raises(ApiError, match='pod a is already assigned to node "n1"') as caught:
        kube.bind("a", "n2", annotations={"hami.io/second": "x"})
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert "annotations" not in kube.client.get(f"{kube.pods}/a")["metadata"]


def test_binding_an_absent_pod_is_not_found(kube: Kube) -> None:
    with pytest.raises(ApiError, match='pods "a" not found') as caught:
        kube.bind("a")
    assert caught.value.code == 404


def test_binding_with_another_uid_conflicts(kube: Kube) -> None:
    kube.needs_minor(22, "since 1.20 ignores the UID of a Binding")
    kube.make_pod("a")
    with pytest.raises(ApiError, match="UID") as caught:
        kube.bind("a", uid="00000000-0000-4000-8000-000000000000")
    assert caught.value.code == 409
    assert "nodeName" not in kube.client.get(f"{kube.pods}/a")["spec"]


def test_binding_without_a_node_is_refused(kube: Kube) -> None:
    kube.make_pod("a")
    with pytest.raises(ApiError, match=r"target\.name: Required value") as caught:
        kube.bind("a", "")
    assert caught.value.code == 500
