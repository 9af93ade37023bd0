"""What the agent measures of itself, as a scrape shows it."""

from __future__ import annotations

import re
from typing import Any

import grpc
import pytest

from node_agent.nvml.binding import ErrorCounts
from tests.node_agent.lab import Lab, wait_until


def value(agent: Any, series: str) -> float:
    """One sample of the exposition text; 0 for a series that is not there."""
    found = re.search(rf"^{re.escape(series)} ([0-9.e+-]+)$", agent.metrics.text().decode(), re.M)
    return float(found[1]) if found else 0.0


def test_making_and_destroying_are_timed(lab: Lab) -> None:
    with lab.agent() as agent:
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
        assert value(agent, 'hami_agent_instance_seconds_count{operation="create"}') == 1
        assert value(agent, 'hami_agent_instances{state="realized"}') == 1
        lab.delete("job")
        wait_until(lambda: lab.placements() == [], "reclaimed")
        destroys = 'hami_agent_instance_seconds_count{operation="destroy"}'
        wait_until(lambda: value(agent, destroys) == 1, "timed")


def test_a_refused_call_is_counted_by_call_and_code(lab: Lab) -> None:
    function = "nvmlDeviceCreateGpuInstanceWithPlacement"
    series = f'hami_agent_nvml_errors_total{{call="{function}",code="4"}}'
    with lab.agent() as agent:
        before = value(agent, series)
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.hardware.fail(function, 4)
        with pytest.raises(grpc.RpcError):
            lab.kubelet.allocate(lab.ids()[0])
        assert value(agent, series) == before + 1


def test_answers_that_mean_no_are_not_errors() -> None:
    counts = ErrorCounts()
    counts.add("nvmlEventSetWait_v2", 10)
    counts.add("nvmlDeviceGetGpuInstanceProfileInfoV", 3)
    counts.add("nvmlDeviceGetGpuInstanceProfileInfoV", 999)
    counts.add("nvmlGpuInstanceDestroy", 3)
    assert counts.items() == [
        (("nvmlDeviceGetGpuInstanceProfileInfoV", 999), 1),
        (("nvmlGpuInstanceDestroy", 3), 1),
    ]


def test_a_blocked_reclaim_shows_its_age_and_its_memory_slices(lab: Lab) -> None:
    with lab.agent(HAMI_RECLAIM_SECONDS="0.1") as agent:
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        lab.kubelet.allocate(lab.ids()[0])
        process = lab.hardware.attach(0, lab.hardware.gpu(0).instances[0].gi_id, 0)
        assert value(agent, "hami_agent_oldest_reclaim_seconds") == 0
        lab.delete("job")
        wait_until(lambda: value(agent, "hami_agent_oldest_reclaim_seconds") > 0, "its age")
        slices = f'hami_agent_blocked_memory_slices{{gpu="{lab.gpus[0]}"}}'
        wait_until(lambda: value(agent, slices) == 2, "blocked")
        lab.hardware.detach(process)
        wait_until(lambda: value(agent, slices) == 0, "free again")
        assert value(agent, 'hami_agent_reclaims_total{outcome="refused"}') >= 1


def test_every_family_has_a_meaning_and_one_name(lab: Lab) -> None:
    with lab.agent() as agent:
        text = agent.metrics.text().decode()
    helped = re.findall(r"^# HELP (\S+) (.+)$", text, re.M)
    names = [name for name, _ in helped]
    assert len(names) == len(set(names))
    assert all(name.startswith("hami_agent_") and len(meaning) > 10 for name, meaning in helped)
