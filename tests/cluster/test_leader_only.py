"""kube-scheduler reaches the leader only, by the label that a Service selects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.rest import ApiException

from tests.cluster.bursts import burst
from tests.cluster.installed import InstalledCluster
from tests.cluster.lab import SYSTEM, Lab
from tests.cluster.pods import LAB_IMAGE, Want
from tests.cluster.processes import Process, wait_until

NAME = "hami-extender"
REPLICAS = ("extender-a", "extender-b")


@pytest.fixture
def labelled(lab: Lab | InstalledCluster) -> Iterator[None]:
    """Pods for the replicas to label, and a Service that selects the leader's.

    What a node's proxy does with the Service's endpoints, the suite's own forwarder does: a replica
    runs beside the cluster, and its Pod stands for it.
    """
    if not isinstance(lab, Lab):
        pytest.skip("needs the extender as processes of the suite")
    api = client.CoreV1Api()
    for name in REPLICAS:
        api.create_namespaced_pod(SYSTEM, _replica_pod(name))
    selector = {"app": NAME, "hami.io/scheduler-role": "leader"}
    spec = {"selector": selector, "ports": [{"port": 443, "targetPort": 8010}]}
    api.create_namespaced_service(SYSTEM, {"metadata": {"name": NAME}, "spec": spec})
    by_readiness = lab.service.is_ready
    try:
        yield
    finally:
        lab.service.is_ready = by_readiness
        # What comes back is a Status, which the client would take for a Service.
        api.delete_namespaced_service(NAME, SYSTEM, _preload_content=False)
        for name in REPLICAS:
            api.delete_namespaced_pod(name, SYSTEM, grace_period_seconds=0)
        wait_until("their Pods are gone", lambda: not api.list_namespaced_pod(SYSTEM).items)


def _replica_pod(name: str) -> dict[str, Any]:
    container = {"name": "c", "image": LAB_IMAGE, "imagePullPolicy": "IfNotPresent"}
    more = {"automountServiceAccountToken": False, "terminationGracePeriodSeconds": 1}
    return {
        "metadata": {"name": name, "labels": {"app": NAME}},
        "spec": {"containers": [container], **more},
    }


def selected() -> set[str]:
    """Names of the Pods that the real endpoints controller found for the Service."""
    with suppress(ApiException):
        subsets = client.CoreV1Api().read_namespaced_endpoints(NAME, SYSTEM).subsets or []
        return {a.target_ref.name for subset in subsets for a in subset.addresses or []}
    return set()


def decisions(lab: Lab, port: int) -> float:
    """How many filters a replica decided."""
    text = lab.metrics(port)
    found = re.search(r"(?m)^hami_scheduler_filter_duration_seconds_count (\S+)$", text)
    return float(found[1]) if found else 0.0


def test_the_scheduler_asks_only_the_replica_that_is_labelled_leader(
    lab: Lab, standby: Process, labelled: None
) -> None:
    port_b = next(port for port in lab.service.ports if port != lab.port)
    pods_of = {lab.port: "extender-a", port_b: "extender-b"}
    first, second = (lab.extender, lab.port), (standby, port_b)
    for (follower, other), (leader, port) in ((first, second), (second, first)):
        follower.stop()
        wait_until("the other leads", lambda p=port: lab.answers(p, "/readyz"), 30)
        follower.start()
        wait_until("it stands by", lambda p=other: lab.answers(p, "/readyz?standby=ok"))
        lab.service.is_ready = lambda number: pods_of[number] in selected()
        wait_until("the Service selects the leader", lambda n=leader.name: selected() == {n}, 30)
        wait_until("it is reached", lambda p=port: lab.service.chosen == p)
        lab.service.connections.clear()
        before = decisions(lab, port)
        burst(f"led-by-{leader.name}", 4, Want())
        assert decisions(lab, port) >= before + 4
        assert decisions(lab, other) == 0
        assert set(lab.service.connections) <= {port}
