"""Asking where Pods would go, over HTTP."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from tests.mirror.observations import GPUS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("mirror")]
URL = "/api/v1/what-if"


def ask(client: Client, **body: object) -> dict:
    answer = client.post(URL, body, content_type="application/json")
    assert answer.status_code == 200, answer.content
    return answer.json()


def refused(client: Client, body: object) -> dict:
    text = body if isinstance(body, str) else json.dumps(body)
    answer = client.post(URL, text, content_type="application/json")
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    return answer.json()


def test_a_small_device_goes_where_little_is_lost(client: Client) -> None:
    answer = ask(client, memory_mib=4000)
    assert answer["fits"]
    (place,) = answer["placed"]
    assert place["node"] == "n1"
    where = {"gpu_uuid": GPUS[0], "profile": "1g.5gb", "start": 1, "size": 1}
    assert place["devices"] == [{"container": 0, "device": 0} | where]
    assert [item["node"] for item in answer["candidates"]] == ["n1", "n2"]


def test_pods_are_placed_one_after_another_until_one_does_not_fit(client: Client) -> None:
    # GPU-3 is not healthy, GPU-0 is in use: two GPUs are empty.
    answer = ask(client, profile="7g.40gb", count=3)
    assert [place["devices"][0]["gpu_uuid"] for place in answer["placed"]] == [GPUS[1], GPUS[2]]
    assert not answer["fits"]
    obstacle = answer["obstacle"]
    assert obstacle["blockers"] is None  # memory slices 4 and 5 of GPU-0 are blocked for good
    assert {item["code"] for item in obstacle["reasons"]} == {
        "CardInsufficientMemory",
        "CardNotHealth",
    }


def test_blockers_name_pods_and_what_would_fit_instead(client: Client) -> None:
    answer = ask(client, memory_mib=20000, use_uuids=[GPUS[0]])
    obstacle = answer["obstacle"]
    assert [row["pod"] for row in obstacle["blockers"]["reservations"]] == ["a", "b"]
    assert (obstacle["blockers"]["start"], obstacle["blockers"]["size"]) == (0, 4)
    assert obstacle["smaller"]["profile"] == "1g.5gb"


def test_several_containers_and_nodes_are_asked_like_a_manifest(client: Client) -> None:
    answer = ask(
        client, containers=[{"memory_mib": 9000}, {"devices": 2, "cores": 40}], nodes=["n1"]
    )
    assert not answer["fits"]  # the second container wants two whole GPUs
    answer = ask(client, containers=[{"memory_mib": 9000}, {"memory_percent": 50}], nodes=["n2"])
    assert [device["container"] for device in answer["placed"][0]["devices"]] == [0, 1]


@pytest.mark.parametrize(
    ("body", "field", "allowed"),
    [
        ({"memory_mib": 0}, "memory_mib", "1…2147483647"),
        ({"memory_mib": "4000"}, "memory_mib", "whole number"),
        ({"memory_mib": 1.5}, "memory_mib", "whole number"),
        ({"memory_mib": True}, "memory_mib", "whole number"),
        ({"count": 101}, "count", "1…100"),
        ({"numa_bind": "yes"}, "numa_bind", "true, false"),
        ({"nonsense": 1}, "nonsense", "memory_mib"),
        ({"use_uuids": ["a,b"]}, "use_uuids[0]", "UUID"),
        ({"use_uuids": "GPU-0"}, "use_uuids", "list"),
        ({"nodes": ["n1", "nowhere"]}, "nodes[1]", "publishes GPUs"),
        ({"nodes": ["\ud800"]}, "nodes[0]", "name"),
        ({"containers": [{"cores": 101}]}, "containers[0].cores", "1…100"),
        ({"containers": [], "count": 1}, "containers", "1…16"),
        ({"containers": [{}], "cores": 1}, "containers", "instead"),
        ([1], "body", "object"),
        ("null", "body", "object"),
    ],
)
def test_a_body_without_sense_is_400_with_field_value_and_allowed(
    client: Client, body, field, allowed
) -> None:
    problem = refused(client, body)
    assert problem["code"] == "request.body.invalid"
    assert problem["errors"][0]["field"] == field
    assert allowed in problem["errors"][0]["allowed"]


@pytest.mark.parametrize("text", ["{", "[" * 100_000, '{"cores": NaN}', "\xff"])
def test_what_is_no_json_is_400(client: Client, text: str) -> None:
    assert refused(client, text)["code"] == "request.invalid"


def test_a_wish_that_the_clusters_policy_does_not_know_is_400(client: Client) -> None:
    problem = refused(client, {"node_policy": "dice"})
    assert problem["code"] == "mig.request.invalid"
    assert "cap-loss" in problem["errors"][0]["allowed"]


def test_only_json_is_read(client: Client) -> None:
    answer = client.post(URL, "a=b", content_type="application/x-www-form-urlencoded")
    assert (answer.status_code, answer.json()["code"]) == (415, "request.media_type_unsupported")


def test_a_body_that_is_too_large_is_413(client: Client) -> None:
    answer = client.post(URL, '"' + "a" * 3_000_000 + '"', content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (413, "request.too_large")


def test_the_question_takes_seven_queries(client: Client, django_assert_num_queries) -> None:
    with django_assert_num_queries(7):  # token, feed, and five for the cluster
        ask(client, memory_mib=4000)
