"""What the node says of itself: written on change only, and again after a failure."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request

import pytest

from hami_web.core import annotations as keys
from hami_web.core.registration import decode_registration
from hami_web.simulator.faults import RequestMatch
from tests.metrics.promtool import complaints, needs_promtool
from tests.node_agent.lab import Lab, wait_until

NODE_PATCH = RequestMatch(verb="patch", resource="nodes")


def node_patches(lab: Lab) -> int:
    return sum(1 for entry in lab.server.audit if (entry.verb, entry.resource) == NODE_WRITE)


NODE_WRITE = ("patch", "nodes")


def published(lab: Lab) -> str | None:
    return lab.node_annotation(keys.NODE_REGISTER)


def test_an_unchanged_node_is_written_once(lab: Lab) -> None:
    with lab.agent(HAMI_DISCOVERY_SECONDS="0.1"):
        wait_until(lambda: published(lab), "published")
        reads = len(lab.server.audit)
        wait_until(lambda: len(lab.server.audit) > reads + 10, "several passes")
        assert node_patches(lab) == 1


def test_a_failed_write_is_repeated(lab: Lab) -> None:
    lab.server.faults.answer(500, NODE_PATCH, times=2)
    with lab.agent(HAMI_DISCOVERY_SECONDS="0.1"):
        assert wait_until(lambda: published(lab), "published")


def test_a_removed_annotation_comes_back(lab: Lab) -> None:
    with lab.agent(HAMI_DISCOVERY_SECONDS="0.1"):
        text = wait_until(lambda: published(lab), "published")
        lab.annotate_node({keys.NODE_REGISTER: None})
        assert wait_until(lambda: published(lab), "published again") == text


def test_a_lost_gpu_leaves_the_offer_and_the_other_one_stays(two_gpus: Lab) -> None:
    lab = two_gpus
    with lab.agent(HAMI_DISCOVERY_SECONDS="0.1"):
        wait_until(lambda: len(lab.kubelet.devices) == 14, "both offered")
        lab.hardware.lose_gpu(0)
        wait_until(lambda: len(lab.kubelet.devices) == 7, "one offered")
        gpus = lambda: decode_registration(published(lab) or "[]").capability.gpus  # noqa: E731
        wait_until(lambda: [gpu.healthy for gpu in gpus()] == [False, True], "published")
        assert lab.kubelet.capacity == 14


def test_a_driver_that_goes_away_withdraws_the_offer_until_it_is_back(lab: Lab) -> None:
    with lab.agent(HAMI_DISCOVERY_SECONDS="0.1") as agent:
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
        lab.hardware.set_options(driver="not_loaded")
        wait_until(lambda: lab.kubelet.devices == (), "withdrawn")
        wait_until(lambda: published(lab) == "[]", "nothing published")
        lab.hardware.set_options(driver="loaded")
        wait_until(lambda: not agent.problem(), "back")
        lab.delete("job")
        wait_until(lambda: lab.placements() == [], "reclaimed by the next session")


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def test_health_and_metrics_are_served(lab: Lab, free_port: int) -> None:
    with lab.agent(HAMI_METRICS_PORT=str(free_port)):
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
        lab.hardware.create_instance(0, "1g.5gb", 0)
        assert 'hami_agent_instances{state="missing"} 0.0' in get(free_port, "/metrics")[1]
        assert get(free_port, "/healthz") == (200, "ok\n")
        assert get(free_port, "/readyz") == (200, "ok\n")
        status, text = get(free_port, "/metrics")
        assert status == 200
        assert 'hami_agent_instances{state="realized"} 1.0' in text
        assert 'hami_agent_instances{state="foreign"} 1.0' in text
        assert 'hami_agent_allocations_total{outcome="success"} 1.0' in text
        assert get(free_port, "/other")[0] == 404


@needs_promtool
def test_promtool_finds_no_fault_with_what_is_served(lab: Lab, free_port: int) -> None:
    with lab.agent(HAMI_METRICS_PORT=str(free_port)):
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
        text = get(free_port, "/metrics")[1]
        assert "hami_agent_allocations_total{" in text
        assert complaints(text.encode()) == {}


def test_a_taken_port_costs_the_metrics_only(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
        with lab.agent(HAMI_METRICS_PORT=str(port)):
            lab.reserve("job", [(0, "1g.5gb", 6, 1)])
            assert lab.kubelet.allocate(lab.ids()[0])


def test_an_agent_that_is_not_ready_says_why(lab: Lab, free_port: int) -> None:
    lab.hardware.set_options(driver="not_loaded")
    with lab.starting_agent(HAMI_METRICS_PORT=str(free_port)) as agent:
        wait_until(lambda: "NVML" in agent.problem(), "said")
        status, text = get(free_port, "/readyz")
        assert status == 503
        assert "NVML cannot be used" in text
        assert get(free_port, "/healthz")[0] == 200
