"""Two replicas, one Lease: who answers, and how fast the other takes over."""

from __future__ import annotations

import http.client
import json
import signal
import time

import pytest

from hami_web.cluster.transport import Request
from tests.extender.test_scheduling import eventually, wait_for_node

LEASE = "/apis/coordination.k8s.io/v1/namespaces/hami-system/leases/hami-extender"


@pytest.fixture
def replicas(start_extender, cluster):
    """A leader and a standby, as Pods a and b of the cluster."""
    for name in ("a", "b"):
        pod = {"metadata": {"name": name}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
        cluster.create("/api/v1/namespaces/hami-system/pods", pod)
    leader = start_extender(HAMI_POD_NAME="a", HAMI_LEASE_SECONDS="3")
    leader.wait_ready()
    standby = start_extender(HAMI_POD_NAME="b", HAMI_LEASE_SECONDS="3")
    eventually(lambda: status(standby, "/readyz?standby=ok") == 200, 15)
    return leader, standby


def status(extender, path):
    try:
        return extender.call("GET", path)[0]
    except (OSError, http.client.HTTPException):
        extender.connection.close()
        return 0


def role(cluster, pod):
    view = cluster.client.get_pod("hami-system", pod)
    return (view.metadata.labels or {}).get("hami.io/scheduler-role")


def test_the_standby_answers_503_and_says_who_leads(replicas, cluster):
    leader, standby = replicas
    cluster.gpu_node("n1")
    wait_for_node(leader, cluster)
    pod = cluster.pod("job-1", gpumem="4500")
    code, text = standby.call("GET", "/readyz")
    assert code == 503
    assert b"this replica stands by; a_" in text
    body = json.dumps({"Pod": pod, "NodeNames": ["n1"]}).encode()
    assert standby.call("POST", "/filter", body)[0] == 503
    assert leader.filter(pod, "n1")["NodeNames"] == ["n1"]
    assert standby.call("GET", "/healthz")[0] == 200
    eventually(lambda: (role(cluster, "a"), role(cluster, "b")) == ("leader", "follower"))


def test_a_stopped_leader_is_followed_within_two_seconds_with_what_it_bound(replicas, cluster):
    leader, standby = replicas
    cluster.gpu_node("n1")
    wait_for_node(leader, cluster)
    bound = cluster.pod("bound", gpumem="20000")
    leader.filter(bound, "n1")
    assert leader.bind(bound, "n1") == ""
    held = cluster.pod("held", gpumem="20000")
    leader.filter(held, "n1")

    stopped_at = time.monotonic()
    leader.process.send_signal(signal.SIGTERM)
    eventually(lambda: status(standby, "/readyz") == 200)
    assert time.monotonic() - stopped_at < 2

    assert "no devices are held" in standby.bind(held, "n1")
    assert standby.bind(bound, "n1") == ""
    assert standby.filter(cluster.pod("whole", gpumem="40000"), "n1")["NodeNames"] is None
    assert standby.filter(held, "n1")["NodeNames"] == ["n1"]
    eventually(lambda: (role(cluster, "a"), role(cluster, "b")) == ("follower", "leader"))
    lease = json.loads(cluster.transport.send(Request("GET", LEASE)))
    assert lease["spec"]["leaseTransitions"] == 1


def test_a_silent_leader_is_followed_in_time_and_writes_nothing_when_it_wakes_up(replicas, cluster):
    leader, standby = replicas
    cluster.gpu_node("n1")
    wait_for_node(leader, cluster)
    pod = cluster.pod("job-1", gpumem="4500")
    assert leader.filter(pod, "n1")["NodeNames"] == ["n1"]
    silent_since = time.monotonic()
    leader.signal_all(signal.SIGSTOP)
    try:
        eventually(lambda: status(standby, "/readyz") == 200, 15)
        assert time.monotonic() - silent_since < 8
    finally:
        leader.signal_all(signal.SIGCONT)
    body = {"PodName": "job-1", "PodNamespace": "default", "PodUID": pod["metadata"]["uid"]}
    answer = leader.call("POST", "/bind", json.dumps(body | {"Node": "n1"}).encode())
    assert answer[0] == 503
    assert cluster.client.get_pod("default", "job-1").node_name == ""


def test_a_restarted_container_leads_again_at_once(start_extender, cluster):
    first = start_extender(HAMI_POD_NAME="a")
    first.wait_ready()
    first.stop(signal.SIGKILL)
    started_at = time.monotonic()
    again = start_extender(HAMI_POD_NAME="a")
    again.wait_ready()
    assert time.monotonic() - started_at < 8
