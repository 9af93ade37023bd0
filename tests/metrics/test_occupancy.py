"""The metrics as text, against a golden file, and their names against promtool's rules."""

from __future__ import annotations

from pathlib import Path

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from hami_web.cluster.views import (
    NodeStatus,
    NodeView,
    ObjectMeta,
    PodSpec,
    PodView,
)
from hami_web.core.capability import NodeCapability
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.registration import encode_registration
from hami_web.core.reservation import RuntimeIdentity, encode_allocations
from hami_web.metrics.exposition import render
from hami_web.metrics.occupancy import OccupancyCollector
from hami_web.scheduling.state import ClusterState
from tests.builders import GPU_B, a100_40gb, reservation

GOLDEN = Path(__file__).parent / "occupancy.txt"


def ready_status(gpus):
    ready = {"type": "Ready", "status": "True"}
    document = {"allocatable": {"nvidia.com/gpu": gpus}, "conditions": [ready]}
    return msgspec.convert(document, NodeStatus)


def gpu_node(name, *gpus):
    register = encode_registration(NodeCapability(gpus))
    status = ready_status("14")
    meta = ObjectMeta(name, annotations={"hami.io/node-nvidia-register": register})
    return NodeView(meta, status=status)


def bound_pod(uid, *reservations):
    annotations = {"hami.io/vgpu-mig-allocations": encode_allocations(reservations)}
    meta = ObjectMeta(f"job-{uid}", "team-a", uid, annotations=annotations)
    return PodView(meta, PodSpec(node_name="gpu-n1"))


def scrape(*pods):
    state = ClusterState(SchedulingPolicy())
    state.set_node(gpu_node("gpu-n1", a100_40gb(), a100_40gb(GPU_B, 1)))
    for pod in pods:
        state.set_pod(pod)
    return render(OccupancyCollector(state.snapshot).collect()).decode()


def samples(text, name):
    families = text_string_to_metric_families(text)
    return [s for family in families for s in family.samples if s.name == name]


REALIZED = reservation(start=2, identity=RuntimeIdentity("MIG-1", 5, 0))


def test_the_whole_text_is_as_agreed():
    text = scrape(bound_pod("1", REALIZED), bound_pod("2", reservation(gpu=GPU_B)))
    assert text == GOLDEN.read_text()


def test_only_whole_runtime_identities_are_instances():
    assert samples(scrape(bound_pod("1", reservation())), "hami_node_gpu_mig_instance_info") == []


def test_two_claims_of_one_identity_do_not_cost_the_scrape():
    text = scrape(bound_pod("1", REALIZED), bound_pod("2", REALIZED))
    [sample] = samples(text, "hami_node_gpu_mig_instance_info")
    assert sample.labels["mig_uuid"] == "MIG-1"


def test_the_instance_series_has_exactly_the_agreed_labels_and_value():
    [sample] = samples(scrape(bound_pod("1", REALIZED)), "hami_node_gpu_mig_instance_info")
    assert sample.value == 1
    assert sample.labels == {
        "compute_instance_id": "0",
        "device_index": "0",
        "device_uuid": REALIZED.gpu_uuid,
        "gpu_instance_id": "5",
        "mig_uuid": "MIG-1",
        "node": "gpu-n1",
        "placement_size": "2",
        "placement_start": "2",
        "profile": "2g.10gb",
        "zone": "vGPU",
    }
