"""Eviction respects disruption budgets."""

from __future__ import annotations

import time

import pytest

from hami_web.simulator.client import ApiError
from hami_web.simulator.documents import JsonObject
from tests.simulator.contract.conftest import Kube

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def evict(kube: Kube, name: str) -> JsonObject:
    meta = {"name": name, "namespace": kube.namespace}
    body = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": meta}
    return kube.client.create(f"{kube.pods}/{name}/eviction", body)


def make_running(kube: Kube, name: str) -> None:
    kube.make_pod(name, labels={"app": "x"})
    kube.bind(name)
    kube.client.patch(f"{kube.pods}/{name}/status", {"status": READY})


def make_budget(kube: Kube, minimum: int) -> None:
    kube.client.create(
        kube.budgets,
        {
            "metadata": {"name": "budget"},
            "spec": {"minAvailable": minimum, "selector": {"matchLabels": {"app": "x"}}},
        },
    )


def evict_when_counted(kube: Kube, name: str) -> JsonObject:
    """A real budget allows nothing until its controller has counted."""
    deadline = time.monotonic() + 10
    while True:
        try:
            return evict(kube, name)
        except ApiError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def test_eviction_deletes_a_pod_without_a_budget(kube: Kube) -> None:
    make_running(kube, "a")
    answer = evict(kube, "a")
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert kube.client.get(f"{kube.pods}/a")["metadata"]["deletionTimestamp"]


def test_a_budget_without_room_refuses(kube: Kube) -> None:
    make_running(kube, "a")
    make_budget(kube, 1)
    with pytest.raises(ApiError, match="violate the pod's disruption budget") as caught:
        evict(kube, "a")
    assert (caught.value.code, caught.value.reason) == (429, "TooManyRequests")
    assert "deletionTimestamp" not in kube.client.get(f"{kube.pods}/a")["metadata"]


def test_a_budget_with_room_allows_one(kube: Kube) -> None:
    make_running(kube, "a")
    make_running(kube, "b")
    make_budget(kube, 1)
    evict_when_counted(kube, "a")
    with pytest.raises(ApiError) as caught:
        evict(kube, "b")
    assert caught.value.code == 429


def test_a_pod_that_has_not_started_is_evicted_whatever_the_budget(kube: Kube) -> None:
    kube.make_pod("a", labels={"app": "x"})
    make_budget(kube, 1)
    assert evict(kube, "a")["status"] == "Success"


def test_eviction_of_an_absent_pod_is_not_found(kube: Kube) -> None:
    with pytest.raises(ApiError, match="not found") as caught:
        evict(kube, "a")
    assert caught.value.code == 404
