"""The simulated API server holds what the tests and the demo put on it."""

from __future__ import annotations

import statistics
import threading
import time

import pytest

from hami_web.simulator.client import ApiClient, Endpoint
from hami_web.simulator.cluster import SimulatedCluster, wait_until
from hami_web.simulator.server import SimulatedApiServer
from tests.simulator.contract.conftest import pod

PODS = "/api/v1/namespaces/default/pods"


@pytest.mark.slow
def test_twenty_watches_see_a_thousand_pods(server: SimulatedApiServer, client: ApiClient) -> None:
    seen = [0] * 20
    watches = [client.watch("/api/v1/pods", {"timeoutSeconds": "50"}) for _ in seen]

    def follow(number: int) -> None:
        for _ in watches[number]:
            seen[number] += 1

    threads = [threading.Thread(target=follow, args=(number,)) for number in range(len(seen))]
    for thread in threads:
        thread.start()
    for number in range(1000):
        client.create(PODS, pod(f"p{number}"))
    wait_until(lambda: seen == [1000] * 20, timeout=30)
    for watch, thread in zip(watches, threads, strict=True):
        watch.interrupt()
        thread.join()
        watch.close()
    assert len(client.get("/api/v1/pods")["items"]) == 1000


def test_no_answer_waits_for_a_delayed_acknowledgement(client: ApiClient) -> None:
    client.create(PODS, pod("a"))
    times = []
    for number in range(30):
        begun = time.perf_counter()
        client.patch(f"{PODS}/a", {"metadata": {"annotations": {"n": str(number)}}})
        times.append(time.perf_counter() - begun)
    assert statistics.median(times) < 0.03


def test_nothing_is_left_when_a_cluster_ends() -> None:
    before = set(threading.enumerate())
    with SimulatedCluster(["n1", "n2"]) as cluster:
        folder = cluster.folder
        other = ApiClient(Endpoint(cluster.server.url))
        watch = other.watch("/api/v1/pods", {"timeoutSeconds": "60"})
    assert list(watch) == []
    watch.close()
    other.close()
    assert not folder.exists()
    wait_until(lambda: set(threading.enumerate()) <= before)
