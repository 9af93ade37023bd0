"""HAMi's series, new and old names: the same families, labels and values for the same cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hami_web.core.policy import SchedulingPolicy
from hami_web.core.quota import NamespaceQuota
from hami_web.core.reservation import RuntimeIdentity
from hami_web.metrics.containers import ContainerCollector
from hami_web.metrics.exposition import render
from hami_web.metrics.legacy import under_old_names
from hami_web.metrics.occupancy import OccupancyCollector
from hami_web.metrics.process import ProcessCollector
from hami_web.metrics.series import collect_all
from hami_web.scheduling.agents import AgentLeases
from hami_web.scheduling.leadership import SoleProcess
from hami_web.scheduling.state import ClusterState
from tests.builders import GPU_A, GPU_B, a100_40gb, reservation
from tests.metrics.test_occupancy import bound_pod, gpu_node

LABELS = Path(__file__).parent.parent / "golden" / "hami-v2.10" / "metric-labels.txt"


@pytest.fixture
def state():
    state = ClusterState(SchedulingPolicy())
    gpus = (a100_40gb(), a100_40gb(GPU_B, 1))
    state.set_node(gpu_node("gpu-n1", *gpus))
    one = RuntimeIdentity("MIG-1", 3, 0)
    state.set_pod(bound_pod("1", reservation(identity=one), reservation(0, 1, start=2)))
    state.set_pod(bound_pod("2", reservation(1, 0, gpu=GPU_B, name="1g.5gb", start=6, size=1)))
    return state


def scrape(state, quotas=()):
    occupancy = OccupancyCollector(state.snapshot)
    containers = ContainerCollector(state.snapshot, lambda: quotas)
    families = list(collect_all((occupancy, containers)))
    text = render([*families, *under_old_names(families)]).decode()
    return list(text_string_to_metric_families(text))


def values(families, name):
    return {
        tuple(sorted(s.labels.items())): s.value
        for f in families
        for s in f.samples
        if f.name == name
    }


def test_families_and_labels_are_those_of_hami(state):
    found = {}
    for family in scrape(state, [NamespaceQuota("team-a", "q", 40000, 100)]):
        for sample in family.samples:
            found[family.name] = " ".join([family.type, *sorted(sample.labels)])
    for line in LABELS.read_text().splitlines():
        name, _, labels = line.partition(" ")
        assert found[name] == labels, name


def test_a_container_counts_all_its_devices_of_a_gpu_under_its_own_index(state):
    families = scrape(state)
    found = values(families, "hami_vgpu_memory_allocated_bytes")
    by_container = {
        (dict(key)["pod"], dict(key)["container_index"], dict(key)["device_uuid"]): value
        for key, value in found.items()
    }
    assert by_container == {
        ("job-1", "0", GPU_A): 2 * 9984 * 1024 * 1024,
        ("job-2", "1", GPU_B): 4864 * 1024 * 1024,
    }
    cores = values(families, "hami_vgpu_core_allocated_ratio")
    assert sorted(cores.values()) == [15, 58]


def test_quotas_are_shown_with_use_and_limit(state):
    quotas = [
        NamespaceQuota("team-a", "big", 40000, None),
        NamespaceQuota("team-a", "small", 30000, None),
        NamespaceQuota("empty", "q", None, 50),
    ]
    families = scrape(state, quotas)
    used = {
        (dict(k)["namespace"], dict(k)["quota_name"], dict(k)["limit"]): v
        for k, v in values(families, "hami_resource_quota_used").items()
    }
    assert used == {
        ("team-a", "nvidia.com/gpumem", "30000"): 2 * 9984 + 4864,
        ("team-a", "nvidia.com/gpucores", "0"): 73,
        ("empty", "nvidia.com/gpumem", "0"): 0,
        ("empty", "nvidia.com/gpucores", "50"): 0,
    }
    limits = {
        (dict(k)["namespace"], dict(k)["quota_name"]): v
        for k, v in values(families, "hami_resource_quota_limit").items()
    }
    assert limits == {("team-a", "nvidia.com/gpumem"): 30000, ("empty", "nvidia.com/gpucores"): 50}


def test_old_names_have_the_values_of_the_new_ones(state):
    families = scrape(state)
    for new, old in (
        ("hami_gpu_memory_allocated_bytes", "GPUDeviceMemoryAllocated"),
        ("hami_gpu_shared_count", "GPUDeviceSharedNum"),
        ("hami_node_gpu_memory_allocated_ratio", "nodeGPUMemoryPercentage"),
        ("hami_vgpu_core_allocated_ratio", "vGPUCoreAllocated"),
        ("hami_resource_quota_used", "QuotaUsed"),
    ):
        assert sorted(values(families, new).values()) == sorted(values(families, old).values())
    [instance] = values(families, "nodeGPUMigInstance")
    assert dict(instance)["migname"] == "2g.10gb-3"


class Process:
    leadership = SoleProcess()
    pace = type("Pace", (), {"waited_s": 1.5})()
    events = type("Events", (), {"written": 3, "failed": 2, "dropped": 1})()
    agents = AgentLeases(ClusterState(SchedulingPolicy()))

    def not_ready_because(self):
        return "no term" if self.leadership.term() is None else None


def test_the_process_tells_its_build_and_its_role():
    process = Process()

    def scraped():
        text = render(ProcessCollector(process).collect()).decode()
        return {s.name: s for f in text_string_to_metric_families(text) for s in f.samples}

    found = scraped()
    assert found["hami_leader"].value == found["hami_scheduler_ready"].value == 0
    assert "hami_leader_term" not in found
    process.leadership.start()
    found = scraped()
    assert found["hami_leader"].value == found["hami_scheduler_ready"].value == 1
    assert found["hami_build_info"].labels["version"] not in ("", "unknown")
    assert set(found["hami_build_info"].labels) == {
        "build_date", "compiler", "go_version", "platform", "revision", "version"
    }  # fmt: skip
    process.leadership.stop()


def test_a_realized_instance_names_its_container_and_others_do_not(state):
    found = [
        sample.labels
        for family in scrape(state)
        for sample in family.samples
        if sample.name == "hami_mig_instance_pod_info"
    ]
    assert found == [
        {
            "container_index": "0",
            "device_uuid": GPU_A,
            "gpu_instance_id": "3",
            "namespace": "team-a",
            "node": "gpu-n1",
            "pod": "job-1",
            "profile": "2g.10gb",
        }
    ]
