"""Creating and replacing: names, versions, conflicts."""

from __future__ import annotations

import pytest

from hami_web.simulator.client import ApiError
from tests.simulator.contract.conftest import Kube, config_map, pod


def test_a_created_object_has_uid_time_and_version(kube: Kube) -> None:
    meta = kube.client.create(kube.config_maps, config_map("a"))["metadata"]
    assert meta["uid"]
    assert meta["creationTimestamp"].endswith("Z")
    assert int(meta["resourceVersion"]) > 0
    assert meta["namespace"] == kube.namespace


def test_a_name_in_use_is_already_exists(kube: Kube) -> None:
    kube.client.create(kube.config_maps, config_map("a"))
    with pytest.raises(ApiError, match='configmaps "a" already exists') as caught:
        kube.client.create(kube.config_maps, config_map("a"))
    assert (caught.value.code, caught.value.reason) == (409, "AlreadyExists")


def test_generate_name_appends_five_letters(kube: Kube) -> None:
    document = pod("unused")
    document["metadata"] = {"generateName": "trainer-"}
    name = kube.client.create(kube.pods, document)["metadata"]["name"]
    assert name.startswith("trainer-")
    assert len(name) == len("trainer-") + 5


def test_a_create_without_any_name_is_invalid(kube: Kube) -> None:
    document = config_map("a")
    del document["metadata"]["name"]
    with pytest.raises(ApiError, match="name or generateName is required") as caught:
        kube.client.create(kube.config_maps, document)
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")


def test_a_create_with_a_resource_version_is_refused(kube: Kube) -> None:
    document = config_map("a")
    document["metadata"]["resourceVersion"] = "1"
    with pytest.raises(ApiError, match="resourceVersion should not be set") as caught:
        kube.client.create(kube.config_maps, document)
    assert caught.value.code == 500


def test_a_replace_with_a_stale_version_conflicts(kube: Kube) -> None:
    first = kube.client.create(kube.config_maps, config_map("a"))
    kube.client.replace(f"{kube.config_maps}/a", first | {"data": {"k": "1"}})
    with pytest.raises(ApiError, match="the object has been modified") as caught:
        kube.client.replace(f"{kube.config_maps}/a", first | {"data": {"k": "2"}})
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert kube.client.get(f"{kube.config_maps}/a")["data"] == {"k": "1"}


def test_a_replace_without_a_version_wins(kube: Kube) -> None:
    kube.client.create(kube.config_maps, config_map("a", k="1"))
    replaced = kube.client.replace(f"{kube.config_maps}/a", config_map("a", k="2"))
    assert replaced["data"] == {"k": "2"}


def test_a_replace_that_changes_nothing_keeps_the_version(kube: Kube) -> None:
    first = kube.client.create(kube.config_maps, config_map("a", k="1"))
    again = kube.client.replace(f"{kube.config_maps}/a", first)
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_a_replace_with_another_uid_conflicts(kube: Kube) -> None:
    first = kube.client.create(kube.config_maps, config_map("a"))
    first["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000"
    with pytest.raises(ApiError, match="Precondition failed: UID in precondition") as caught:
        kube.client.replace(f"{kube.config_maps}/a", first)
    assert caught.value.code == 409


def test_a_replace_of_an_absent_object_is_not_found(kube: Kube) -> None:
    with pytest.raises(ApiError, match='configmaps "a" not found') as caught:
        kube.client.replace(f"{kube.config_maps}/a", config_map("a"))
    assert (caught.value.code, caught.value.reason) == (404, "NotFound")


def test_a_replace_of_a_pod_spec_is_refused(kube: Kube) -> None:
    document = kube.make_pod("a")
    document["spec"]["schedulerName"] = "other"
    with pytest.raises(ApiError, match="pod updates may not change fields") as caught:
        kube.client.replace(f"{kube.pods}/a", document)
    assert caught.value.code == 422


def test_a_body_of_another_name_is_refused(kube: Kube) -> None:
    kube.client.create(kube.config_maps, config_map("a"))
    with pytest.raises(ApiError, match="does not match the name on the URL") as caught:
        kube.client.replace(f"{kube.config_maps}/a", config_map("b"))
    assert caught.value.code == 400


def test_a_namespace_that_does_not_exist_takes_nothing(kube: Kube) -> None:
    with pytest.raises(ApiError, match='namespaces "absent" not found') as caught:
        kube.client.create("/api/v1/namespaces/absent/configmaps", config_map("a"))
    assert caught.value.code == 404


def test_an_unknown_kind_is_not_found(kube: Kube) -> None:
    with pytest.raises(ApiError, match="could not find the requested resource") as caught:
        kube.client.get(f"{kube.base}/gpus")
    assert caught.value.code == 404


def test_a_verb_that_a_path_lacks_is_not_allowed(kube: Kube) -> None:
    with pytest.raises(ApiError, match="does not allow this method") as caught:
        kube.client.replace(kube.config_maps, config_map("a"))
    assert (caught.value.code, caught.value.reason) == (405, "MethodNotAllowed")


def test_a_body_that_is_no_json_is_a_bad_request(kube: Kube) -> None:
    with pytest.raises(ApiError) as caught:
        kube.client.create(kube.config_maps, ["no", "object"])
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")


def test_a_lease_is_created_by_a_replace(kube: Kube) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "leader"},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15},
    }
    assert kube.client.replace(f"{kube.leases}/leader", lease)["metadata"]["uid"]


def test_a_lease_is_not_replaced_without_a_version(kube: Kube) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "leader"},
        "spec": {"holderIdentity": "a"},
    }
    kube.client.create(kube.leases, lease)
    with pytest.raises(ApiError, match=r"metadata\.resourceVersion") as caught:
        kube.client.replace(f"{kube.leases}/leader", lease)
    assert caught.value.code == 422
