"""What a new process knows, and what an unbound Pod keeps."""

from __future__ import annotations

from hami_web.cluster.transport import Request
from tests.extender.test_scheduling import eventually, wait_for_node


def test_a_new_process_counts_what_bound_pods_carry(extender, start_extender, cluster):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    pod = cluster.pod("job-1", gpumem="20000")
    extender.filter(pod, "n1")
    extender.bind(pod, "n1")

    assert extender.stop() == 0
    fresh = start_extender()
    fresh.wait_ready()

    whole = cluster.pod("whole", gpumem="40000")
    assert fresh.filter(whole, "n1")["NodeNames"] is None
    assert fresh.bind(pod, "n1") == ""
    assert fresh.filter(cluster.pod("half", gpumem="20000"), "n1")["NodeNames"] == ["n1"]


def test_a_hold_that_is_never_bound_expires_by_the_policy(start_extender, cluster, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("scheduling:\n  holdSeconds: 1\n")
    extender = start_extender(HAMI_POLICY_FILE=str(policy))
    extender.wait_ready()
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    first, second = (cluster.pod(name, gpumem="40000") for name in ("first", "second"))
    assert extender.filter(first, "n1")["NodeNames"] == ["n1"]
    assert extender.filter(second, "n1")["NodeNames"] is None
    eventually(lambda: extender.filter(second, "n1")["NodeNames"] == ["n1"])
    assert "no devices are held" in extender.bind(first, "n1")


def test_a_pod_that_waits_since_before_the_process_is_woken_when_it_is_ready(
    start_extender, cluster
):
    cluster.gpu_node("n1")
    cluster.pod("early", gpumem="4500")
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}
    body = {"status": {"conditions": [condition]}}
    path = "/api/v1/namespaces/default/pods/early/status"
    merge = "application/merge-patch+json"
    cluster.transport.send(Request("PATCH", path, body=body, content_type=merge))
    start_extender().wait_ready()
    eventually(lambda: "hami.io/retry-at" in cluster.annotations("early"))


def test_a_pod_that_the_scheduler_gave_up_while_the_process_runs_is_woken(extender, cluster):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    cluster.pod("late", gpumem="4500")
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}
    body = {"status": {"conditions": [condition]}}
    path = "/api/v1/namespaces/default/pods/late/status"
    merge = "application/merge-patch+json"
    cluster.transport.send(Request("PATCH", path, body=body, content_type=merge))
    eventually(lambda: "hami.io/retry-at" in cluster.annotations("late"), 2)
