"""What no write may store."""

from __future__ import annotations

import pytest

from hami_web.simulator.client import ApiError
from hami_web.simulator.documents import JsonObject
from tests.simulator.contract.conftest import Kube, pod


def refused(kube: Kube, document: JsonObject) -> ApiError:
    with pytest.raises(ApiError) as caught:
        kube.client.create(kube.pods, document)
    return caught.value


def with_limits(**limits: object) -> JsonObject:
    document = pod("a")
    named = {f"nvidia.com/{name}": value for name, value in limits.items()}
    document["spec"]["containers"][0]["resources"] = {"limits": named}
    return document


def test_annotations_of_more_than_256_kib_are_refused(kube: Kube) -> None:
    error = refused(kube, pod("a", annotations={"x": "y" * 256 * 1024}))
    assert error.code == 422
    assert "metadata.annotations: Too long" in error.message


def test_annotations_of_256_kib_are_kept(kube: Kube) -> None:
    kube.make_pod("a", annotations={"x": "y" * (256 * 1024 - 1)})


@pytest.mark.parametrize("value", ["y" * 64, "with space", "-first", "a/b"])
def test_a_label_value_that_is_none_is_refused(kube: Kube, value: str) -> None:
    error = refused(kube, pod("a", labels={"hami.io/vgpu-node": value}))
    assert error.code == 422
    assert "metadata.labels" in error.message


def test_a_label_value_of_63_characters_is_kept(kube: Kube) -> None:
    kube.make_pod("a", labels={"x": "y" * 63})


@pytest.mark.parametrize("name", ["Upper", "under_score", "-a", "a" * 254])
def test_a_name_that_is_none_is_refused(kube: Kube, name: str) -> None:
    assert refused(kube, pod(name)).code == 422


def test_an_annotation_key_that_is_none_is_refused(kube: Kube) -> None:
    error = refused(kube, pod("a", annotations={"two words": "x"}))
    assert error.code == 422


def test_a_pod_without_containers_is_refused(kube: Kube) -> None:
    document = pod("a")
    document["spec"]["containers"] = []
    error = refused(kube, document)
    assert error.code == 422
    assert "spec.containers: Required value" in error.message


@pytest.mark.parametrize("amount", ["1.5", "500m"])
def test_a_fractional_extended_resource_is_refused(kube: Kube, amount: str) -> None:
    error = refused(kube, with_limits(gpu=1, gpumem=amount))
    assert error.code == 422
    assert "must be an integer" in error.message


def test_a_negative_extended_resource_is_refused(kube: Kube) -> None:
    error = refused(kube, with_limits(gpu=-1))
    assert error.code == 422
    assert "must be greater than or equal to 0" in error.message


def test_a_quantity_that_is_none_is_a_bad_request(kube: Kube) -> None:
    assert refused(kube, with_limits(gpu="one")).code == 400


def test_quantities_come_back_in_canonical_text(kube: Kube) -> None:
    document = with_limits(gpu=1, gpumem=9000, gpucores="1e1")
    container = kube.client.create(kube.pods, document)["spec"]["containers"][0]
    assert container["resources"]["limits"] == {
        "nvidia.com/gpu": "1",
        "nvidia.com/gpumem": "9k",
        "nvidia.com/gpucores": "10",
    }
    assert container["resources"]["requests"] == container["resources"]["limits"]


def test_requests_below_limits_are_refused_for_extended_resources(kube: Kube) -> None:
    document = with_limits(gpu=2)
    resources = document["spec"]["containers"][0]["resources"]
    resources["requests"] = {"nvidia.com/gpu": "1"}
    error = refused(kube, document)
    assert error.code == 422
    assert "must be equal to nvidia.com/gpu limit" in error.message


def test_a_priority_without_a_class_is_refused(kube: Kube) -> None:
    document = pod("a")
    document["spec"]["priority"] = 7
    assert refused(kube, document).code == 403


def test_an_absent_priority_class_is_refused(kube: Kube) -> None:
    document = pod("a")
    document["spec"]["priorityClassName"] = "absent"
    error = refused(kube, document)
    assert error.code == 403
    assert "no PriorityClass with name absent was found" in error.message
