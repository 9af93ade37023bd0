"""Deleting: grace, preconditions, finalizers."""

from __future__ import annotations

import pytest

from hami_web.simulator.client import ApiError
from hami_web.simulator.documents import JsonObject
from tests.simulator.contract.conftest import Kube, config_map


def metadata_of(kube: Kube, name: str) -> JsonObject:
    return kube.client.get(f"{kube.pods}/{name}")["metadata"]


def test_a_bound_pod_stays_until_its_kubelet_ends_it(kube: Kube) -> None:
    kube.make_pod("a")
    kube.bind("a")
    answer = kube.client.delete(f"{kube.pods}/a")
    assert (answer["kind"], answer["metadata"]["deletionGracePeriodSeconds"]) == ("Pod", 30)
    assert metadata_of(kube, "a")["deletionTimestamp"]
    kube.client.delete(f"{kube.pods}/a", {"gracePeriodSeconds": 0})
    with pytest.raises(ApiError, match="not found"):
        metadata_of(kube, "a")


def test_an_unbound_pod_goes_at_once(kube: Kube) -> None:
    kube.make_pod("a")
    kube.client.delete(f"{kube.pods}/a")
    with pytest.raises(ApiError, match="not found"):
        metadata_of(kube, "a")


def test_a_finished_pod_goes_at_once(kube: Kube) -> None:
    kube.make_pod("a")
    kube.bind("a")
    kube.client.patch(f"{kube.pods}/a/status", {"status": {"phase": "Succeeded"}})
    kube.client.delete(f"{kube.pods}/a")
    with pytest.raises(ApiError, match="not found"):
        metadata_of(kube, "a")


def test_a_second_deletion_only_shortens_the_grace(kube: Kube) -> None:
    kube.make_pod("a")
    kube.bind("a")
    kube.client.delete(f"{kube.pods}/a", {"gracePeriodSeconds": 20})
    kube.client.delete(f"{kube.pods}/a", {"gracePeriodSeconds": 60})
    assert metadata_of(kube, "a")["deletionGracePeriodSeconds"] == 20
    kube.client.delete(f"{kube.pods}/a", {"gracePeriodSeconds": 5})
    assert metadata_of(kube, "a")["deletionGracePeriodSeconds"] == 5


def test_a_deletion_meant_for_another_uid_conflicts(kube: Kube) -> None:
    kube.make_pod("a")
    options = {"preconditions": {"uid": "00000000-0000-4000-8000-000000000000"}}
    with pytest.raises(ApiError, match="the UID in the precondition") as caught:
        kube.client.delete(f"{kube.pods}/a", options)
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")


def test_a_deletion_meant_for_another_version_conflicts(kube: Kube) -> None:
    version = kube.make_pod("a")["metadata"]["resourceVersion"]
    kube.client.patch(f"{kube.pods}/a", {"metadata": {"annotations": {"x": "1"}}})
    with pytest.raises(ApiError, match="ResourceVersion") as caught:
        kube.client.delete(f"{kube.pods}/a", {"preconditions": {"resourceVersion": version}})
    assert caught.value.code == 409


def test_deleting_other_kinds_answers_with_a_status(kube: Kube) -> None:
    made = kube.client.create(kube.config_maps, config_map("a"))
    answer = kube.client.delete(f"{kube.config_maps}/a")
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    details = {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert answer["details"] == details


def test_a_finalizer_holds_the_object_until_it_is_removed(kube: Kube) -> None:
    kube.make_pod("a", finalizers=["example.com/hold"])
    kube.client.delete(f"{kube.pods}/a")
    assert metadata_of(kube, "a")["deletionTimestamp"]
    kube.client.patch(f"{kube.pods}/a", {"metadata": {"finalizers": None}})
    with pytest.raises(ApiError, match="not found"):
        metadata_of(kube, "a")


def test_a_patch_does_not_undo_a_deletion(kube: Kube) -> None:
    kube.make_pod("a")
    kube.bind("a")
    kube.client.delete(f"{kube.pods}/a")
    kube.client.patch(f"{kube.pods}/a", {"metadata": {"deletionTimestamp": None}})
    assert metadata_of(kube, "a")["deletionTimestamp"]


def test_a_pod_on_its_way_out_is_not_bound(kube: Kube) -> None:
    kube.make_pod("a", finalizers=["example.com/hold"])
    kube.client.delete(f"{kube.pods}/a")
    with pytest.raises(ApiError, match="is being deleted") as caught:
        kube.bind("a")
    kube.client.patch(f"{kube.pods}/a", {"metadata": {"finalizers": None}})
    assert caught.value.code == 409
