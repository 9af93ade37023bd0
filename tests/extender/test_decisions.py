"""``/decisions`` of a running extender: what it decided, for the role that keeps it."""

from __future__ import annotations

import json

import pytest

from tests.builders import GPU_A
from tests.extender.test_scheduling import eventually, wait_for_node


def read(extender, query=""):
    status, body = extender.call("GET", f"/decisions{query}")
    assert status == 200, body
    return json.loads(body)


def test_the_life_of_two_pods_is_told_from_a_cursor(extender, cluster):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    cursor = read(extender)["cursor"]
    first, second = (cluster.pod(name, gpumem="40000") for name in ("first", "second"))
    extender.filter(first, "n1")
    extender.bind(first, "n1")
    for _ in range(3):
        extender.filter(second, "n1")

    page = read(extender, f"?since={cursor}")

    assert (page["reset"], page["more"]) == (False, False)
    held, bound, refused = page["decisions"]
    assert (held["outcome"], held["pod"]["name"], held["node"]) == ("held", "first", "n1")
    assert (bound["outcome"], bound["explanation"]) == ("bound", None)
    assert (refused["outcome"], refused["count"]) == ("refused", 3)
    assert refused["pod"] == {
        "namespace": "default",
        "name": "second",
        "uid": second["metadata"]["uid"],
    }
    why = refused["explanation"]
    assert why["reasons"] == {"CardInsufficientMemory": 1}
    [gpu] = why["nodes"][0]["gpus"]
    assert gpu == {
        "gpu_uuid": GPU_A,
        "code": "CardInsufficientMemory",
        "free_memory_slices": 0,
        "memory_slices": 8,
    }
    assert [item["name"] for item in why["nearest"]["reservations"]] == ["first"]
    assert read(extender, f"?since={page['cursor']}")["decisions"] == []


def test_what_a_pod_asks_for_wrongly_and_a_bind_without_hold_have_codes(extender, cluster):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    cursor = read(extender)["cursor"]
    pod = cluster.pod("job-1", gpumem="4500")
    extender.bind(pod, "n1")
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] = "1.5"
    extender.filter(pod, "n1")
    failed, invalid = read(extender, f"?since={cursor}")["decisions"]
    assert (failed["outcome"], failed["code"]) == ("bind_failed", "mig.bind.no_hold")
    assert (invalid["outcome"], invalid["code"]) == ("invalid", "mig.request.invalid")
    assert "nvidia.com/gpumem" in invalid["message"]


def test_pods_without_gpus_are_no_decisions(extender, cluster):
    pod = cluster.pod("plain", count=None)
    cursor = read(extender)["cursor"]
    extender.filter(pod, "n1")
    assert read(extender, f"?since={cursor}")["decisions"] == []


@pytest.mark.parametrize("query", ["?limit=0", "?limit=1001", "?limit=x", f"?since={'9' * 65}"])
def test_a_parameter_without_sense_is_refused(extender, query):
    status, body = extender.call("GET", f"/decisions{query}")
    assert status == 400
    assert b"is not allowed" in body or b"not allowed" in body


def test_a_standby_has_nothing_to_tell(extender, start_extender):
    standby = start_extender()
    eventually(lambda: is_up(standby), 15)
    status, body = standby.call("GET", "/decisions")
    assert status == 503
    assert b"stands by" in body


def is_up(extender):
    try:
        return extender.call("GET", "/healthz")[0] == 200
    except OSError:
        extender.connection.close()
        return False
