"""A thousand waiting Pods cost the API server no more writes than Pods can start."""

from __future__ import annotations

import time
from collections import Counter

from tests.extender.test_scheduling import eventually, wait_for_node

PODS = 1000
EVENTS_A_SECOND = 20


def writes(api):
    reads = ("get", "list", "watch")
    return Counter((e.verb, e.resource) for e in api.audit if e.verb not in reads)


def waiting(number):
    """A Pod as kube-scheduler shows it; the API server need not know it to have it refused."""
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "40000"}
    main = {"name": "main", "resources": {"limits": limits, "requests": limits}}
    name = f"storm-{number}"
    meta = {"name": name, "namespace": "default", "uid": name}
    meta["creationTimestamp"] = "2099-01-01T00:00:00Z"
    return {"metadata": meta, "spec": {"containers": [main], "schedulerName": "hami-scheduler"}}


def test_a_storm_of_waiting_pods_is_no_storm_of_writes(extender, cluster, api):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    first = cluster.pod("first", gpumem="40000")
    extender.filter(first, "n1")
    assert extender.bind(first, "n1") == ""
    oldest = cluster.pod("oldest", gpumem="40000")
    for pod in (oldest, *map(waiting, range(PODS - 1))):
        assert extender.filter(pod, "n1")["FailedNodes"]
    before, began = writes(api), time.monotonic()

    cluster.delete_pod("first")
    eventually(lambda: "hami.io/retry-at" in cluster.annotations("oldest"), 5)
    for pod in map(waiting, range(50)):
        extender.filter(pod, "n1")
    time.sleep(1.5)

    found, seconds = writes(api) - before, time.monotonic() - began
    assert found["patch", "pods"] <= 3  # the one that fits, and again when a second has passed
    assert found["create", "events"] + found["patch", "events"] <= EVENTS_A_SECOND * (seconds + 1)
    assert set(found) <= {
        ("delete", "pods"),
        ("patch", "pods"),
        ("create", "events"),
        ("patch", "events"),
        ("patch", "leases"),
        ("update", "leases"),
    }
