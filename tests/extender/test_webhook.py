"""The webhook as the API server calls it: the shipped configuration on a simulated cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from hami_web.cluster.client import OfficialConnection
from hami_web.cluster.errors import ClusterError, ServerFailed
from hami_web.cluster.transport import Request, Transport
from hami_web.simulator.identity import User
from hami_web.simulator.server import write_kubeconfig
from tests.extender.test_scheduling import wait_for_node

WEBHOOK = Path(__file__).parent.parent.parent / "deploy" / "webhook.yaml"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
PODS = "/api/v1/namespaces/{}/pods"
ALLOCATIONS = "hami.io/vgpu-mig-allocations"
AGENT = "system:serviceaccount:hami-system:hami-node-agent"


def register(cluster, url, **changes):
    document = yaml.safe_load(WEBHOOK.read_text())
    [webhook] = document["webhooks"]
    webhook["clientConfig"] = {"url": f"{url}/webhook"}
    webhook |= changes
    cluster.create(CONFIGURATIONS, document)


@pytest.fixture
def webhook(extender, cluster):
    register(cluster, f"http://127.0.0.1:{extender.port}")


@pytest.fixture
def as_user(api, tmp_path):
    """A transport for a user by name; from then on the nameless are not let in any more."""
    opened = []

    def connect(name):
        api.identities.tokens[name] = User(name)
        path = write_kubeconfig(tmp_path / f"{len(opened)}.conf", server=api.url, token=name)
        connection = OfficialConnection(path)
        opened.append(connection)
        return Transport(connection, user_agent=name)

    yield connect
    api.identities.tokens.clear()
    for connection in opened:
        connection.close()


def gpu_pod(name, annotations=None, **spec):
    limits = {"nvidia.com/gpumem": "4500"}
    main = {"name": "main", "image": "x", "resources": {"limits": limits, "requests": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"containers": [main]} | spec,
    }


def annotate(transport, name, annotations):
    body = {"metadata": {"annotations": annotations}}
    path = f"{PODS.format('default')}/{name}"
    merge = "application/merge-patch+json"
    transport.send(Request("PATCH", path, body=body, content_type=merge))


def annotations_of(transport, name):
    pod = json.loads(transport.send(Request("GET", f"{PODS.format('default')}/{name}")))
    return pod["metadata"].get("annotations") or {}


def test_a_gpu_pod_gets_what_it_lacks(webhook, cluster):
    stored = cluster.create(PODS.format("default"), gpu_pod("job"))
    assert stored["spec"]["schedulerName"] == "hami-scheduler"
    limits = stored["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4500"}


def test_a_running_pods_manifest_can_be_applied_again(extender, webhook, cluster):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    pod = cluster.create(PODS.format("default"), gpu_pod("job"))
    assert extender.filter(pod, "n1")["NodeNames"] == ["n1"]
    assert extender.bind(pod, "n1") == ""
    live = json.loads(cluster.transport.send(Request("GET", f"{PODS.format('default')}/job")))
    assert live["spec"]["nodeName"] == "n1"
    dumped = gpu_pod("again") | {"spec": live["spec"]}
    dumped["metadata"] |= {key: live["metadata"][key] for key in ("annotations",)}
    stored = cluster.create(PODS.format("default"), dumped)
    assert stored["spec"].get("nodeName") is None
    assert not [k for k in stored["metadata"].get("annotations") or {} if k.startswith("hami.io/")]
    assert extender.filter(stored, "n1")["NodeNames"] == ["n1"]


def test_a_tenant_can_neither_forge_nor_edit_a_reservation(webhook, cluster, as_user):
    eve, agent = as_user("eve"), as_user(AGENT)
    pod = gpu_pod("job", {ALLOCATIONS: "[{"}, schedulerName="default-scheduler")
    eve.send(Request("POST", PODS.format("default"), body=pod))
    assert ALLOCATIONS not in annotations_of(eve, "job")
    with pytest.raises(ClusterError, match=r"hami.io/vgpu-mig-allocations.*not allowed"):
        annotate(eve, "job", {ALLOCATIONS: "[{"})
    annotate(eve, "job", {"team/owner": "eve"})
    annotate(agent, "job", {ALLOCATIONS: "[]"})
    with pytest.raises(ClusterError, match="a change by 'eve'"):
        annotate(eve, "job", {ALLOCATIONS: None})
    assert annotations_of(eve, "job")[ALLOCATIONS] == "[]"


def test_a_refusal_reaches_the_user_in_words(webhook, cluster):
    pod = gpu_pod("job")
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/mig-1g.5gb"] = "1"
    with pytest.raises(ClusterError, match=r"nvidia\.com/mig-1g\.5gb is not allowed"):
        cluster.create(PODS.format("default"), pod)


def test_sizes_are_judged_by_what_the_cluster_has(extender, webhook, cluster):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    pod = gpu_pod("job")
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] = "50000"
    with pytest.raises(ClusterError, match=r"7g\.40gb with 40320 MiB"):
        cluster.create(PODS.format("default"), pod)


def test_an_away_webhook_with_policy_ignore_lets_pods_through_unchanged(cluster):
    register(cluster, "http://127.0.0.1:9")
    stored = cluster.create(PODS.format("default"), gpu_pod("job"))
    assert stored["spec"]["schedulerName"] == "default-scheduler"


def test_an_away_webhook_with_policy_fail_stops_pods_but_not_the_systems(cluster):
    register(cluster, "http://127.0.0.1:9", failurePolicy="Fail")
    with pytest.raises(ServerFailed, match=r"failed calling webhook .vgpu.hami.io"):
        cluster.create(PODS.format("default"), gpu_pod("job"))
    for namespace in ("kube-system", "hami-system"):
        cluster.create(PODS.format(namespace), gpu_pod("job"))
