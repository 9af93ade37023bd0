"""Faults happen to the requests that they are ordered for, as often as ordered."""

from __future__ import annotations

import http.client
import time

import pytest

from hami_web.simulator.client import ApiClient, ApiError
from hami_web.simulator.faults import RequestMatch
from hami_web.simulator.server import SimulatedApiServer

MAPS = "/api/v1/namespaces/default/configmaps"
CUT = (OSError, http.client.HTTPException)


def make(client: ApiClient, name: str = "a") -> None:
    client.create(MAPS, {"metadata": {"name": name}})


def names(client: ApiClient) -> list[str]:
    return [item["metadata"]["name"] for item in client.get(MAPS)["items"]]


def test_a_dropped_request_is_not_done(server: SimulatedApiServer, client: ApiClient) -> None:
    server.faults.order("drop", RequestMatch(verb="create"))
    with pytest.raises(CUT):
        make(client)
    assert names(client) == []
    make(client)
    assert names(client) == ["a"]


def test_a_lost_answer_leaves_the_write_done(server: SimulatedApiServer, client: ApiClient) -> None:
    server.faults.order("lose-answer", RequestMatch(verb="create", resource="configmaps"))
    with pytest.raises(CUT):
        make(client)
    assert names(client) == ["a"]


def test_a_truncated_answer_is_no_answer(server: SimulatedApiServer, client: ApiClient) -> None:
    server.faults.order("truncate", RequestMatch(verb="list"))
    with pytest.raises(http.client.IncompleteRead):
        names(client)
    assert names(client) == []


def test_an_ordered_refusal_is_answered_and_not_done(
    server: SimulatedApiServer, client: ApiClient
) -> None:
    server.faults.answer(429, RequestMatch(verb="create"), times=2, retry_after=1)
    for _ in range(2):
        with pytest.raises(ApiError) as caught:
            make(client)
        assert (caught.value.code, caught.value.reason) == (429, "TooManyRequests")
    make(client)
    assert names(client) == ["a"]


def test_a_delay_comes_before_the_work(server: SimulatedApiServer, client: ApiClient) -> None:
    server.faults.delay(0.2, RequestMatch(resource="configmaps"))
    begun = time.monotonic()
    names(client)
    assert time.monotonic() - begun >= 0.2


def test_a_fault_meets_only_what_it_matches(server: SimulatedApiServer, client: ApiClient) -> None:
    server.faults.answer(500, RequestMatch(verb="create", name="", namespace="kube-system"))
    make(client)
    assert names(client) == ["a"]


def test_events_arrive_twice_when_ordered(server: SimulatedApiServer, client: ApiClient) -> None:
    make(client)
    server.faults.order("duplicate-events", RequestMatch(verb="watch"))
    watch = client.watch(MAPS, {"timeoutSeconds": "1"})
    kinds = [event["type"] for event in watch]
    watch.close()
    assert kinds == ["ADDED", "ADDED"]


def test_cleared_faults_do_not_happen(server: SimulatedApiServer, client: ApiClient) -> None:
    server.faults.order("drop", times=None)
    server.faults.clear()
    assert names(client) == []


def test_an_expired_watch_may_be_refused_by_http(
    server: SimulatedApiServer, client: ApiClient
) -> None:
    make(client)
    server.compact()
    server.api.expired_watch_is_http = True
    with pytest.raises(ApiError) as caught:
        client.watch(MAPS, {"resourceVersion": "1"})
    assert caught.value.code == 410


def test_cut_connections_end_watches(server: SimulatedApiServer, client: ApiClient) -> None:
    watch = client.watch(MAPS, {"timeoutSeconds": "30"})
    server.close_connections()
    assert list(watch) == []
    watch.close()
    assert names(client) == []
