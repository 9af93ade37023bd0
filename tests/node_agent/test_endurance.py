"""Nothing grows: descriptors, threads and memory of an agent over many lives of Pods.

``HAMI_ENDURANCE_CYCLES`` sets how many; 5000 take about ten minutes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from hami_web.core import annotations as keys
from tests.node_agent.lab import Lab, wait_until

CYCLES = int(os.environ.get("HAMI_ENDURANCE_CYCLES", "30"))
WARM_UP = max(10, CYCLES // 10)
GROWTH_KIB = 8 * 1024


@dataclass(frozen=True)
class Footprint:
    descriptors: int
    threads: int
    resident_kib: int


def footprint(pid: int) -> Footprint:
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    return Footprint(
        len(os.listdir(f"/proc/{pid}/fd")),
        int(status["Threads"]),
        int(status["VmRSS"].split()[0]),
    )


def live_and_die(lab: Lab, number: int) -> None:
    name = f"job-{number}"
    lab.reserve(name, [(0, "1g.5gb", number % 7, 1)])
    lab.kubelet.allocate(f"{lab.gpus[0]}-{number % 7}")
    assert lab.annotations(name)[keys.POD_BIND_PHASE] == "success"
    lab.delete(name)
    wait_until(lambda: lab.journal() == [], "reclaimed")


@pytest.mark.slow
@pytest.mark.timeout(60 if CYCLES <= 120 else 7200)
def test_an_agent_does_not_grow(lab: Lab) -> None:
    changes = {"HAMI_DEVICE_LIST_STRATEGY": "cdi", "HAMI_CDI_DIR": str(lab.folder / "cdi")}
    with lab.agent_process(HAMI_DISCOVERY_SECONDS="600", **changes) as process:
        for number in range(WARM_UP):
            live_and_die(lab, number)
        before = footprint(process.pid)
        for number in range(WARM_UP, WARM_UP + CYCLES):
            live_and_die(lab, number)
        after = footprint(process.pid)
        assert list((lab.folder / "cdi").iterdir()) == []
    print(f"{CYCLES} lives: {before} -> {after}")
    assert after.descriptors <= before.descriptors + 4
    assert after.threads <= before.threads + 4
    assert after.resident_kib <= before.resident_kib + GROWTH_KIB


@pytest.mark.slow
def test_restarts_of_the_kubelet_leave_one_server_and_one_stream(lab: Lab) -> None:
    with lab.agent_process() as process:
        wait_until(lambda: len(lab.kubelet.devices) == 7, "offered")
        before = footprint(process.pid)
        for number in range(6):
            lab.kubelet.stop()
            lab.kubelet.start()
            wait_until(lambda number=number: len(lab.kubelet.registrations) == number + 2, "again")
            wait_until(lambda: len(lab.kubelet.devices) == 7, "offered again")
        after = footprint(process.pid)
    assert after.descriptors <= before.descriptors + 4
    assert after.threads <= before.threads + 10
