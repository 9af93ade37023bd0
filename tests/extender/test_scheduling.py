"""Filter and bind end to end: the real server process, a simulated API server."""

from __future__ import annotations

import json
import threading
import time

from hami_web.simulator.faults import RequestMatch
from tests.builders import GPU_A

ALLOCATIONS = "hami.io/vgpu-mig-allocations"


def eventually(condition, within_s=5.0):
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)


def wait_for_node(extender, cluster, node="n1"):
    """Until the extender's watch has shown the node."""
    probe = {"metadata": {"name": "probe", "namespace": "default", "uid": "probe"}}
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000000"}
    probe["spec"] = {"containers": [{"name": "main", "resources": {"limits": limits}}]}
    eventually(
        lambda: (
            "node unregistered"
            not in str(extender.filter(probe, node)["FailedAndUnresolvableNodes"])
        )
    )


def test_a_pod_is_held_and_bound_with_its_whole_reservation(extender, cluster):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    pod = cluster.pod("job-1", gpumem="4500")

    assert extender.filter(pod, "n1")["NodeNames"] == ["n1"]
    assert cluster.annotations("job-1") == {}
    assert extender.bind(pod, "n1") == ""

    bound = cluster.client.get_pod("default", "job-1")
    assert bound.node_name == "n1"
    found = dict(bound.annotations)
    moment = found.pop("hami.io/bind-time")
    assert found == {
        "hami.io/vgpu-node": "n1",
        "hami.io/vgpu-time": moment,
        "hami.io/vgpu-devices-to-allocate": f"{GPU_A},NVIDIA,4864,15:;",
        "hami.io/vgpu-devices-allocated": f"{GPU_A},NVIDIA,4864,15:;",
        ALLOCATIONS: '[{"containerIndex":0,"deviceIndex":0,"gpuUUID":"'
        + GPU_A
        + '","profile":"1g.5gb","placement":{"start":6,"size":1}}]',
        "hami.io/bind-phase": "allocating",
    }
    assert abs(int(moment) - time.time()) < 10
    assert cluster.lock_of("n1").endswith(",default,job-1")


def test_a_second_bind_of_a_bound_pod_is_success(extender, cluster):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    pod = cluster.pod("job-1", gpumem="4500")
    extender.filter(pod, "n1")
    extender.bind(pod, "n1")
    before = cluster.annotations("job-1")
    assert extender.bind(pod, "n1") == ""
    assert cluster.annotations("job-1") == before


def test_whole_nodes_are_answered_with_whole_nodes_and_hold(extender, cluster):
    node = cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    pod = cluster.pod("job-1", gpumem="4500")
    call = {"Pod": pod, "Nodes": {"metadata": {}, "items": [node]}, "NodeNames": None}
    answer = extender.post("/filter", call)
    assert [item["metadata"]["name"] for item in answer["Nodes"]["items"]] == ["n1"]
    assert answer["NodeNames"] is None
    assert extender.bind(pod, "n1") == ""


def test_a_bind_without_a_hold_or_elsewhere_is_refused(extender, cluster):
    cluster.gpu_node("n1")
    cluster.gpu_node("n2")
    wait_for_node(extender, cluster, "n2")
    pod = cluster.pod("job-1", gpumem="4500")
    assert "no devices are held" in extender.bind(pod, "n1")

    extender.filter(pod, "n1")
    assert "held on node n1, not on n2" in extender.bind(pod, "n2")
    stranger = {"metadata": pod["metadata"] | {"uid": "another"}}
    assert "another Pod of that name" in extender.bind(stranger, "n1")
    assert cluster.client.get_pod("default", "job-1").node_name == ""
    assert cluster.lock_of("n1") is None


def test_a_pod_that_is_gone_leaves_neither_hold_nor_lock(extender, cluster):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    pod = cluster.pod("whole", gpumem="40000")
    extender.filter(pod, "n1")
    cluster.delete_pod("whole")
    error = extender.bind(pod, "n1")
    assert "gone" in error or "no devices are held" in error
    assert cluster.lock_of("n1") is None
    other = cluster.pod("other", gpumem="40000")
    eventually(lambda: extender.filter(other, "n1")["NodeNames"] == ["n1"])


def test_a_lost_answer_of_the_binding_is_settled_by_reading(extender, cluster, api):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    pod = cluster.pod("job-1", gpumem="4500")
    extender.filter(pod, "n1")
    api.faults.order("lose-answer", RequestMatch(subresource="binding"))
    assert extender.bind(pod, "n1") == ""
    assert cluster.client.get_pod("default", "job-1").node_name == "n1"
    assert cluster.lock_of("n1") is not None


def test_a_refused_binding_gives_lock_and_hold_back(extender, cluster, api):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    pod = cluster.pod("job-1", gpumem="40000")
    extender.filter(pod, "n1")
    api.faults.answer(403, RequestMatch(subresource="binding"))
    assert "403" in extender.bind(pod, "n1")
    assert cluster.lock_of("n1") is None
    assert extender.filter(cluster.pod("other", gpumem="40000"), "n1")["NodeNames"] == ["n1"]


def test_binds_of_one_node_wait_for_the_lock_in_order(extender, start_extender, cluster):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    pods = [cluster.pod(f"job-{number}", gpumem="4500") for number in range(3)]
    for pod in pods:
        assert extender.filter(pod, "n1")["NodeNames"] == ["n1"]
    extender.bind(pods[0], "n1")

    done = []

    def bind(pod):
        client = type(extender)(extender.port)
        done.append((pod["metadata"]["name"], client.bind(pod, "n1")))
        client.connection.close()

    threads = [threading.Thread(target=bind, args=(pod,)) for pod in pods[1:]]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    assert done == []
    cluster.unlock("n1")
    eventually(lambda: done == [("job-1", "")])
    cluster.unlock("n1")
    eventually(lambda: done == [("job-1", ""), ("job-2", "")])
    for thread in threads:
        thread.join()


def test_a_lock_whose_holder_stays_is_reported_after_the_wait(start_extender, cluster):
    extender = start_extender(HAMI_BIND_WAIT_S="0.3")
    extender.wait_ready()
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    first, second = (cluster.pod(name, gpumem="4500") for name in ("first", "second"))
    extender.filter(first, "n1")
    extender.bind(first, "n1")
    extender.filter(second, "n1")
    error = extender.bind(second, "n1")
    assert "locked by default/first since" in error
    assert cluster.lock_of("n1").endswith(",default,first")


def test_a_pod_that_fits_nowhere_is_woken_when_space_appears(extender, cluster):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    first = cluster.pod("first", gpumem="40000")
    extender.filter(first, "n1")
    extender.bind(first, "n1")
    second = cluster.pod("second", gpumem="40000")
    third = cluster.pod("third", gpumem="40000")
    assert extender.filter(second, "n1")["FailedNodes"] == {"n1": "1/1 CardInsufficientMemory"}
    extender.filter(third, "n1")

    cluster.delete_pod("first")

    eventually(lambda: "hami.io/retry-at" in cluster.annotations("second"), 2)
    time.sleep(0.2)
    assert "hami.io/retry-at" not in cluster.annotations("third")
    assert extender.filter(second, "n1")["NodeNames"] == ["n1"]


def test_a_pod_that_a_quota_refused_is_woken_when_the_quota_goes(extender, cluster):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    quotas = "/api/v1/namespaces/default/resourcequotas"
    hard = {"limits.nvidia.com/gpumem": "1000"}
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}}
    cluster.create(quotas, body | {"spec": {"hard": hard}})
    eventually(lambda: "hami_resource_quota_limit{" in str(extender.call("GET", "/metrics")[1]))
    pod = cluster.pod("limited", gpumem="4500")
    assert "ResourceQuotaNotFit" in str(extender.filter(pod, "n1"))
    time.sleep(1.5)  # the looks that start and refusal themselves asked for are over

    cluster.delete(f"{quotas}/small")

    eventually(lambda: "hami.io/retry-at" in cluster.annotations("limited"), 3)
    assert extender.filter(pod, "n1")["NodeNames"] == ["n1"]


def test_a_pod_without_gpus_passes_and_is_bound_plainly(extender, cluster):
    cluster.gpu_node("n1")
    pod = cluster.pod("plain", count=None)
    assert extender.filter(pod, "n1", "n2")["NodeNames"] == ["n1", "n2"]
    assert extender.bind(pod, "n1") == ""
    assert cluster.annotations("plain") == {}


def test_a_malformed_request_holds_nothing_and_says_what_is_allowed(extender, cluster):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    pod = cluster.pod("job-1")
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] = "1.5"
    answer = extender.filter(pod, "n1")
    assert answer["NodeNames"] is None
    assert "nvidia.com/gpumem: '1.5' is not allowed; allowed: a whole number" in answer["Error"]


def test_a_node_that_no_eviction_would_help_is_unresolvable(extender, cluster):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    answer = extender.filter(cluster.pod("job-1", gpumem="4500"), "absent")
    assert answer["FailedAndUnresolvableNodes"] == {"absent": "node unregistered"}
    # kube-scheduler 1.20 reads no other key.
    assert answer["FailedNodes"] == {"absent": "node unregistered"}


def test_metrics_show_realized_instances(extender, cluster):
    cluster.gpu_node("n1")
    wait_for_node(extender, cluster)
    pod = cluster.pod("job-1", gpumem="4500")
    extender.filter(pod, "n1")
    extender.bind(pod, "n1")
    [entry] = json.loads(cluster.annotations("job-1")[ALLOCATIONS])
    entry |= {"migUUID": "MIG-1", "gpuInstanceID": 13, "computeInstanceID": 0}
    view = cluster.client.get_pod("default", "job-1")
    cluster.client.annotate_pod(view, {ALLOCATIONS: json.dumps([entry])})
    series = (
        'hami_node_gpu_mig_instance_info{compute_instance_id="0",device_index="0",'
        f'device_uuid="{GPU_A}",gpu_instance_id="13",mig_uuid="MIG-1",node="n1",'
        'placement_size="1",placement_start="6",profile="1g.5gb",zone="vGPU"} 1.0'
    )
    eventually(lambda: series in extender.call("GET", "/metrics")[1].decode())


def test_pods_at_once_on_two_nodes_never_share_memory_slices(start_extender, cluster):
    extender = start_extender(HAMI_EXTENDER_THREADS="32")
    extender.wait_ready()
    names = ("n1", "n2")
    for name in names:
        cluster.gpu_node(name)
        wait_for_node(extender, cluster, name)
    pods = [cluster.pod(f"job-{number}", gpumem="4500") for number in range(14)]
    stop = threading.Event()
    errors = []

    def realize():
        """Stands for the agents: the lock goes as soon as it is seen."""
        while not stop.wait(0.01):
            for name in names:
                if cluster.lock_of(name):
                    cluster.unlock(name)

    def schedule(pod):
        client = type(extender)(extender.port)
        [node] = client.filter(pod, *names)["NodeNames"]
        errors.append(client.bind(pod, node))
        client.connection.close()

    agents = threading.Thread(target=realize)
    threads = [threading.Thread(target=schedule, args=(pod,)) for pod in pods]
    for thread in (agents, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    agents.join()

    assert errors == [""] * 14
    bound = [cluster.client.get_pod("default", f"job-{number}") for number in range(14)]
    taken = sorted(
        (pod.node_name, json.loads(pod.annotations[ALLOCATIONS])[0]["placement"]["start"])
        for pod in bound
    )
    assert taken == [(name, start) for name in names for start in range(7)]
