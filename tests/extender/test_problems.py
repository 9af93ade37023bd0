"""Reservations that are wrong, end to end: an event on the Pod, a series that names it, no room."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest

from hami_web.cluster.transport import Request
from hami_web.core.liveness import AGENT_LEASE_LABEL, AGENT_LEASE_ROLE
from tests.extender.test_scheduling import ALLOCATIONS, eventually, wait_for_node
from tests.metrics.promtool import HAMI_COMPLAINTS, complaints, needs_promtool

KEYS = f"k1 {base64.b64encode(b'1' * 32).decode()}\n"
SIGNATURE = "hami.io/vgpu-mig-signature"


def series(extender):
    text = extender.call("GET", "/metrics")[1].decode()
    name = "hami_mig_reservation_problem{"
    return [line for line in text.splitlines() if line.startswith(name)]


def event_reasons(cluster, pod):
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    found = json.loads(cluster.transport.send(Request("GET", path)))["items"]
    return [item["reason"] for item in found if item["regarding"]["name"] == pod]


def annotate(cluster, name, **changes):
    cluster.client.annotate_pod(cluster.client.get_pod("default", name), changes)


def schedule(extender, cluster, name, memory="4500"):
    pod = cluster.pod(name, gpumem=memory)
    assert extender.filter(pod, "n1")["NodeNames"] == ["n1"]
    assert extender.bind(pod, "n1") == ""
    cluster.unlock("n1")
    return pod


def test_a_malformed_reservation_closes_its_node_and_names_its_pod_until_it_is_gone(
    extender, cluster
):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    schedule(extender, cluster, "odd")
    annotate(cluster, "odd", **{ALLOCATIONS: '[{"gpuUUID"'})
    eventually(lambda: series(extender))
    [line] = series(extender)
    assert 'namespace="default",node="n1",pod="odd",problem="malformed"' in line
    eventually(lambda: "ReservationMalformed" in event_reasons(cluster, "odd"))
    other = cluster.pod("other", gpumem="4500")
    assert "NodeReservationMalformed" in str(extender.filter(other, "n1"))
    cluster.delete_pod("odd")
    eventually(lambda: not series(extender))
    eventually(lambda: extender.filter(other, "n1")["NodeNames"] == ["n1"])


@needs_promtool
def test_promtool_finds_fault_with_hamis_names_alone_in_what_is_served(extender, cluster):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    schedule(extender, cluster, "job")
    schedule(extender, cluster, "odd")
    annotate(cluster, "odd", **{ALLOCATIONS: '[{"gpuUUID"'})
    eventually(lambda: series(extender))
    served = extender.call("GET", "/metrics")[1]
    assert b"\nhami_gpu_shared_count{" in served
    assert set(complaints(served)) == HAMI_COMPLAINTS


@pytest.fixture
def signing(start_extender, tmp_path, cluster):
    (tmp_path / "keys").write_text(KEYS)
    running = start_extender(HAMI_SIGNING_KEYS=str(tmp_path / "keys"))
    running.wait_ready()
    cluster.gpu_node("n1")
    cluster.client.annotate_node(
        cluster.client.get_node("n1"), {"hami.io/node-mig-verified": "true"}
    )
    cluster.create(
        "/apis/coordination.k8s.io/v1/namespaces/hami-system/leases",
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": "hami-node-agent-n1",
                "labels": {AGENT_LEASE_LABEL: AGENT_LEASE_ROLE},
            },
            "spec": {
                "holderIdentity": "n1",
                "leaseDurationSeconds": 3600,
                "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            },
        },
    )
    wait_for_node(running, cluster)
    return running


def test_a_tenant_cannot_close_a_node_with_a_pod_of_its_own(signing, cluster):
    forged = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "forged", "annotations": {ALLOCATIONS: "[{"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "x"}]},
    }
    cluster.create("/api/v1/namespaces/default/pods", forged)
    eventually(lambda: series(signing))
    assert 'pod="forged",problem="untrusted"' in series(signing)[0]
    eventually(lambda: "ReservationUntrusted" in event_reasons(cluster, "forged"))
    schedule(signing, cluster, "whole", "40000")


@pytest.mark.parametrize("change", [{ALLOCATIONS: None}, {SIGNATURE: "v1.k1.0"}])
def test_a_tenant_cannot_free_what_it_uses(signing, cluster, change):
    schedule(signing, cluster, "whole", "40000")
    annotate(cluster, "whole", **change)
    eventually(lambda: series(signing))
    assert 'pod="whole",problem="altered"' in series(signing)[0]
    other = cluster.pod("other", gpumem="4500")
    assert signing.filter(other, "n1")["FailedNodes"] == {"n1": "1/1 CardInsufficientMemory"}
    cluster.delete_pod("whole")
    eventually(lambda: signing.filter(other, "n1")["NodeNames"] == ["n1"])
