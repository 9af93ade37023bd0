"""Reclaiming: one refusal stops no other, and GPUs do not wait for each other."""

from __future__ import annotations

import time

from hami_web.core import annotations as keys
from hami_web.core.blocked import decode_blocked
from node_agent.nvml.simulated import Fault
from tests.node_agent.lab import Lab, wait_until

DESTROY = "nvmlGpuInstanceDestroy"


def run(lab: Lab, name: str, gpu: int, start: int) -> None:
    lab.reserve(name, [(gpu, "1g.5gb", start, 1)])
    lab.kubelet.allocate(lab.ids(start + 1, gpu)[start])
    lab.set_status(name, "Running", "running")


def test_an_instance_that_is_refused_stops_no_other_of_the_same_pass(two_gpus: Lab) -> None:
    lab = two_gpus
    with lab.agent(HAMI_RECLAIM_SECONDS="600"):
        for number in range(3):
            run(lab, f"job-{number}", 0, number)
        run(lab, "there", 1, 0)
        middle = next(i for i in lab.hardware.gpu(0).instances if i.start == 1)
        process = lab.hardware.attach(0, middle.gi_id, 0)
        for name in ("job-0", "job-1", "job-2", "there"):
            lab.delete(name)
        wait_until(lambda: lab.placements() == [(1, 1)] and lab.placements(1) == [], "the others")

        def blocked() -> list[tuple[str, int, str]]:
            text = lab.node_annotation(keys.NODE_MIG_BLOCKED) or "[]"
            return [(b.gpu_uuid, b.placement.start, b.reason) for b in decode_blocked(text)]

        ((gpu, start, reason),) = wait_until(blocked, "published as blocked")
        assert (gpu, start) == (lab.gpus[0], 1)
        assert "reclaiming: " in reason
        assert str(process) in reason
        lab.hardware.detach(process)
        wait_until(lambda: lab.placements() == [], "by its own retry")
        wait_until(lambda: blocked() == [], "published")


def test_two_gpus_are_reclaimed_side_by_side(two_gpus: Lab) -> None:
    lab = two_gpus
    pause = 1.5
    with lab.agent(HAMI_RECLAIM_SECONDS="600"):
        run(lab, "here", 0, 0)
        run(lab, "there", 1, 0)
        lab.hardware.add_fault(Fault(DESTROY, latency_s=pause, times=2))
        began = time.monotonic()
        lab.delete("here")
        wait_until(lambda: len(lab.hardware.state().faults[0:1]) == 1, "begun")
        lab.delete("there")
        wait_until(lambda: not lab.placements(0) and not lab.placements(1), "both")
        assert time.monotonic() - began < 2 * pause
