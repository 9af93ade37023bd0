"""Patches: merge, JSON and strategic, with null and preconditions."""

from __future__ import annotations

import pytest

from hami_web.simulator.client import ApiError
from hami_web.simulator.patches import JSON_PATCH, STRATEGIC
from tests.simulator.contract.conftest import Kube

STALE = "the object has been modified"


def test_a_merge_patch_sets_and_null_removes(kube: Kube) -> None:
    kube.make_pod("a", annotations={"keep": "1", "drop": "2"})
    patched = kube.client.patch(
        f"{kube.pods}/a", {"metadata": {"annotations": {"drop": None, "new": "3"}}}
    )
    assert patched["metadata"]["annotations"] == {"keep": "1", "new": "3"}


def test_null_removes_all_annotations(kube: Kube) -> None:
    kube.make_pod("a", annotations={"x": "1"})
    patched = kube.client.patch(f"{kube.pods}/a", {"metadata": {"annotations": None}})
    assert "annotations" not in patched["metadata"]


def test_a_merge_patch_with_a_stale_version_conflicts(kube: Kube) -> None:
    version = kube.make_pod("a")["metadata"]["resourceVersion"]
    meta = {"resourceVersion": version, "annotations": {"x": "1"}}
    kube.client.patch(f"{kube.pods}/a", {"metadata": meta})
    with pytest.raises(ApiError, match=STALE) as caught:
        kube.client.patch(f"{kube.pods}/a", {"metadata": meta | {"annotations": {"x": "2"}}})
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")


def test_a_patch_of_the_uid_is_refused(kube: Kube) -> None:
    kube.make_pod("a")
    meta = {"uid": "00000000-0000-4000-8000-000000000000", "annotations": {"x": "1"}}
    with pytest.raises(ApiError, match="field is immutable") as caught:
        kube.client.patch(f"{kube.pods}/a", {"metadata": meta})
    assert caught.value.code == 422


def test_a_patch_that_changes_nothing_keeps_the_version(kube: Kube) -> None:
    made = kube.make_pod("a", annotations={"x": "1"})
    again = kube.client.patch(f"{kube.pods}/a", {"metadata": {"annotations": {"x": "1"}}})
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_a_json_patch_adds_tests_and_removes(kube: Kube) -> None:
    kube.make_pod("a", annotations={"hami.io/x": "1"})
    operations = [
        {"op": "test", "path": "/metadata/annotations/hami.io~1x", "value": "1"},
        {"op": "remove", "path": "/metadata/annotations/hami.io~1x"},
        {"op": "add", "path": "/metadata/annotations/y", "value": "2"},
    ]
    patched = kube.client.patch(f"{kube.pods}/a", operations, JSON_PATCH)
    assert patched["metadata"]["annotations"] == {"y": "2"}


def test_a_json_patch_whose_test_fails_changes_nothing(kube: Kube) -> None:
    kube.make_pod("a", annotations={"x": "1"})
    operations = [
        {"op": "add", "path": "/metadata/annotations/y", "value": "2"},
        {"op": "test", "path": "/metadata/annotations/x", "value": "other"},
    ]
    with pytest.raises(ApiError) as caught:
        kube.client.patch(f"{kube.pods}/a", operations, JSON_PATCH)
    assert caught.value.code == 422
    assert kube.client.get(f"{kube.pods}/a")["metadata"]["annotations"] == {"x": "1"}


def test_a_json_patch_of_a_missing_path_is_refused(kube: Kube) -> None:
    kube.make_pod("a")
    operations = [{"op": "remove", "path": "/metadata/annotations/x"}]
    with pytest.raises(ApiError) as caught:
        kube.client.patch(f"{kube.pods}/a", operations, JSON_PATCH)
    assert caught.value.code == 422


def test_a_strategic_patch_merges_conditions_by_type(kube: Kube) -> None:
    kube.make_pod("a")
    kube.bind("a")
    ready = {"type": "Ready", "status": "True"}
    patched = kube.client.patch(
        f"{kube.pods}/a/status", {"status": {"conditions": [ready]}}, STRATEGIC
    )
    kinds = {condition["type"] for condition in patched["status"]["conditions"]}
    assert kinds == {"PodScheduled", "Ready"}


def test_an_unknown_patch_type_is_unsupported(kube: Kube) -> None:
    kube.make_pod("a")
    with pytest.raises(ApiError) as caught:
        kube.client.patch(f"{kube.pods}/a", {"metadata": {}}, "application/json")
    assert (caught.value.code, caught.value.reason) == (415, "UnsupportedMediaType")


def test_a_patch_of_an_absent_object_is_not_found(kube: Kube) -> None:
    with pytest.raises(ApiError, match='pods "a" not found') as caught:
        kube.client.patch(f"{kube.pods}/a", {"metadata": {"annotations": {"x": "1"}}})
    assert caught.value.code == 404


def test_an_annotation_that_is_no_string_is_refused(kube: Kube) -> None:
    kube.make_pod("a")
    with pytest.raises(ApiError) as caught:
        kube.client.patch(f"{kube.pods}/a", {"metadata": {"annotations": {"x": 1}}})
    assert caught.value.code in (400, 422)


def test_a_pod_is_not_renamed(kube: Kube) -> None:
    kube.make_pod("a")
    with pytest.raises(ApiError, match="does not match the name on the URL") as caught:
        kube.client.patch(f"{kube.pods}/a", {"metadata": {"name": "b"}})
    assert caught.value.code == 400
