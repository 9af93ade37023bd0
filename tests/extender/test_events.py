"""Events as kubectl shows them, through the real process and the simulated API server."""

from __future__ import annotations

import json

from hami_web.cluster.transport import Request
from tests.extender.test_scheduling import eventually, wait_for_node

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


def events_of(cluster, name):
    listed = json.loads(cluster.transport.send(Request("GET", EVENTS)))["items"]
    return {item["reason"]: item for item in listed if item["regarding"]["name"] == name}


def test_each_step_of_a_pod_is_told_once(extender, cluster):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    pod = cluster.pod("job", gpumem="4500")
    for _ in range(3):
        extender.filter(pod, "n1")
    assert extender.bind(pod, "n1") == ""
    eventually(lambda: len(events_of(cluster, "job")) == 2)
    found = events_of(cluster, "job")
    assert set(found) == {"FilteringSucceed", "BindingSucceed"}
    assert found["FilteringSucceed"]["note"].startswith("find fit node(n1), holds 1g.5gb at ")
    assert found["BindingSucceed"]["note"] == "Successfully binding node [n1] to default/job"
    assert found["BindingSucceed"]["regarding"]["uid"] == pod["metadata"]["uid"]
    assert found["BindingSucceed"]["type"] == "Normal"


def test_a_refused_pod_is_told_the_reasons_and_their_nodes_once(extender, cluster):
    cluster.gpu_node("n1")
    cluster.gpu_node("n2")
    wait_for_node(extender, cluster, "n2")
    pod = cluster.pod("job", gpumem="60000")
    for _ in range(20):
        assert extender.filter(pod, "n1", "n2", "n3")["NodeNames"] is None
    eventually(lambda: events_of(cluster, "job"))
    [event] = events_of(cluster, "job").values()
    assert (event["reason"], event["type"]) == ("FilteringFailed", "Warning")
    assert event["note"] == (
        "no available node, 3 nodes do not meet: 2 nodes CardInsufficientMemory(n1,n2), "
        "1 nodes node unregistered(n3)"
    )


def test_a_refused_bind_is_told(extender, cluster):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    pod = cluster.pod("job", gpumem="4500")
    extender.bind(pod, "n1")
    eventually(lambda: "BindingFailed" in events_of(cluster, "job"))
    assert "no devices are held for it" in events_of(cluster, "job")["BindingFailed"]["note"]
