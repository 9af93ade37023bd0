"""Allocate in bounded time, and called several times at once."""

from __future__ import annotations

import time

import grpc

from hami_web.core import annotations as keys
from hami_web.simulator.faults import RequestMatch
from node_agent.nvml.simulated import Fault
from tests.node_agent.lab import Lab, wait_until
from tests.node_agent.test_refusals import refused


def test_a_call_without_an_answer_in_time_says_so(lab: Lab) -> None:
    with lab.agent(HAMI_ALLOCATE_SECONDS="0.3", HAMI_API_SECONDS="3"):
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.server.faults.delay(2.0, RequestMatch(verb="get", resource="pods"))
        code, text = refused(lab)
        assert code is grpc.StatusCode.DEADLINE_EXCEEDED
        assert "did not end in 0.3 s" in text
        wait_until(lambda: lab.annotations("job")[keys.POD_BIND_PHASE] == "failed", "given up")
        assert lab.placements() == []


def test_a_call_that_hangs_in_nvml_is_answered_in_time_and_cleaned_up_behind(lab: Lab) -> None:
    with lab.agent(HAMI_ALLOCATE_SECONDS="0.3"):
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        create = "nvmlGpuInstanceCreateComputeInstance"
        lab.hardware.add_fault(Fault(create, latency_s=3.0, times=1))
        began = time.monotonic()
        code, _ = refused(lab)
        assert code is grpc.StatusCode.DEADLINE_EXCEEDED
        assert time.monotonic() - began < 2.8
        assert lab.placements() == [(6, 1)], "NVML is still at it"
        wait_until(lambda: lab.placements() == [], "taken back")
        wait_until(lambda: lab.annotations("job")[keys.POD_BIND_PHASE] == "failed", "given up")
        wait_until(lambda: not lab.node_annotation(keys.NODE_LOCK), "unlocked")
        assert lab.journal() == []


def test_the_same_call_many_times_at_once_makes_one_instance(lab: Lab) -> None:
    """A kubelet that lost an answer may ask again while the first call is still at work."""
    with lab.agent():
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        create = "nvmlDeviceCreateGpuInstanceWithPlacement"
        lab.hardware.add_fault(Fault(create, latency_s=0.2, times=1))
        calls = [lab.kubelet.allocate_in_background(lab.ids()[0]) for _ in range(4)]
        answers = [call.result(20)["NVIDIA_VISIBLE_DEVICES"] for call in calls]
        assert len(set(answers)) == 1
        assert lab.placements() == [(2, 2)]
        assert len(lab.journal()) == 1


def test_calls_of_two_pods_at_once_give_each_its_own_or_refuse(lab: Lab) -> None:
    """Only the holder of the lock is served; the other's ids get nothing of it."""
    with lab.agent():
        lab.reserve("first", [(0, "1g.5gb", 0, 1)])
        lab.reserve("second", [(0, "2g.10gb", 2, 2), (0, "1g.5gb", 4, 1)], lock=False)
        own = lab.kubelet.allocate_in_background(lab.ids()[0])
        other = lab.kubelet.allocate_in_background(*lab.ids(3)[1:])
        assert other.exception(20) is not None
        assert own.result(20)["NVIDIA_VISIBLE_DEVICES"].count("MIG-") == 1
        assert lab.placements() == [(0, 1)]
