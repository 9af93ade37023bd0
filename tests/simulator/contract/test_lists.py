"""Lists: pages, selectors, versions."""

from __future__ import annotations

import pytest

from hami_web.simulator.client import ApiError
from hami_web.simulator.documents import JsonObject
from tests.simulator.contract.conftest import Kube, config_map


def names(listed: JsonObject) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


def select(kube: Kube, **params: str) -> list[str]:
    return names(kube.client.get(kube.pods, params))


def test_pages_together_are_the_whole_list_at_one_version(kube: Kube) -> None:
    for number in range(5):
        kube.make_pod(f"p{number}")
    first = kube.client.get(kube.pods, {"limit": "2"})
    assert (names(first), first["metadata"]["remainingItemCount"]) == (["p0", "p1"], 3)
    kube.make_pod("p9")
    second = kube.client.get(kube.pods, {"limit": "2", "continue": first["metadata"]["continue"]})
    third = kube.client.get(kube.pods, {"limit": "2", "continue": second["metadata"]["continue"]})
    assert names(second) + names(third) == ["p2", "p3", "p4"]
    assert "continue" not in third["metadata"]
    assert third["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_a_page_of_a_selecting_list_does_not_count_what_remains(kube: Kube) -> None:
    kube.make_pod("a")
    kube.make_pod("b")
    params = {"limit": "1", "fieldSelector": "spec.schedulerName=contract"}
    assert "remainingItemCount" not in kube.client.get(kube.pods, params)["metadata"]


@pytest.mark.parametrize("token", ["%%%", "abc", "YWJj"])
def test_a_token_that_is_none_is_refused(kube: Kube, token: str) -> None:
    with pytest.raises(ApiError, match="continue key is not valid") as caught:
        kube.client.get(kube.pods, {"limit": "1", "continue": token})
    assert caught.value.code == 400


def test_a_token_older_than_the_history_is_gone(kube: Kube) -> None:
    for name in ("a", "b"):
        kube.make_pod(name)
    token = kube.client.get(kube.pods, {"limit": "1"})["metadata"]["continue"]
    kube.make_pod("c")
    kube.forget_history()
    with pytest.raises(ApiError, match="continue parameter is too old") as caught:
        kube.client.get(kube.pods, {"limit": "1", "continue": token})
    assert (caught.value.code, caught.value.reason) == (410, "Expired")


def test_the_list_names_kind_and_version(kube: Kube) -> None:
    listed = kube.client.get(kube.pods)
    assert (listed["kind"], listed["apiVersion"]) == ("PodList", "v1")
    assert int(listed["metadata"]["resourceVersion"]) > 0


def test_field_selectors_choose_by_node_phase_and_name(kube: Kube) -> None:
    kube.make_pod("a")
    kube.make_pod("b")
    kube.bind("b", "n1")
    assert select(kube, fieldSelector="spec.nodeName=n1") == ["b"]
    assert select(kube, fieldSelector="spec.nodeName!=n1") == ["a"]
    assert select(kube, fieldSelector="spec.nodeName=") == ["a"]
    assert select(kube, fieldSelector="metadata.name==a,status.phase=Pending") == ["a"]
    assert select(kube, fieldSelector=f"metadata.namespace={kube.namespace}") == ["a", "b"]
    assert select(kube, fieldSelector="status.phase!=Pending") == []


def test_an_unknown_field_is_refused(kube: Kube) -> None:
    with pytest.raises(ApiError, match=r"field label not supported: spec\.hostname") as caught:
        select(kube, fieldSelector="spec.hostname=x")
    assert caught.value.code == 400


def test_label_selectors_choose_by_equality_and_sets(kube: Kube) -> None:
    kube.make_pod("a", labels={"app": "x", "tier": "1"})
    kube.make_pod("b", labels={"app": "y"})
    kube.make_pod("c")
    assert select(kube, labelSelector="app=x") == ["a"]
    assert select(kube, labelSelector="app!=x") == ["b", "c"]
    assert select(kube, labelSelector="app in (x, y),!tier") == ["b"]
    assert select(kube, labelSelector="app notin (x)") == ["b", "c"]
    assert select(kube, labelSelector="tier") == ["a"]


def test_a_malformed_label_selector_is_refused(kube: Kube) -> None:
    with pytest.raises(ApiError) as caught:
        select(kube, labelSelector="app in x")
    assert caught.value.code == 400


def test_a_version_of_the_future_is_a_timeout(kube: Kube) -> None:
    with pytest.raises(ApiError, match="Too large resource version") as caught:
        kube.client.get(kube.pods, {"resourceVersion": "999999999"})
    assert (caught.value.code, caught.value.reason) == (504, "Timeout")


def test_a_deletion_of_a_collection_takes_the_selected(kube: Kube) -> None:
    for name in ("a-map", "b-map"):
        kube.client.create(kube.config_maps, config_map(name))
    params = {"fieldSelector": "metadata.name=a-map"}
    kube.client.request("DELETE", kube.config_maps, params=params)
    listed = names(kube.client.get(kube.config_maps))
    assert ("a-map" in listed, "b-map" in listed) == (False, True)
