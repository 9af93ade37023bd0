"""A kill -9 at any step of Allocate: afterwards hardware, annotations and lock agree again."""

from __future__ import annotations

import subprocess

import grpc
import pytest

from hami_web.core import annotations as keys
from hami_web.simulator.faults import RequestMatch
from node_agent.nvml.simulated import Fault
from node_agent.nvml.simulated.library import KILLED_STATUS
from tests.node_agent.lab import Lab, wait_until

QUIET = {"HAMI_DISCOVERY_SECONDS": "600", "HAMI_RECLAIM_SECONDS": "600"}
MUTATIONS = ("nvmlDeviceCreateGpuInstanceWithPlacement", "nvmlGpuInstanceCreateComputeInstance")
NAMED = [Fault(name, kill=when) for name in MUTATIONS for when in ("before", "after")]
# Every call of NVML that one Allocate makes, whatever it is; beyond the last nothing is hit.
NUMBERED = [Fault("*", skip=number, kill="before") for number in range(0, 60, 3)]


def fault_name(fault: Fault) -> str:
    return f"{fault.kill}-{fault.function}-{fault.skip}"


def prepare(lab: Lab) -> str:
    """A neighbour that must never notice, and an instance that is not ours."""
    lab.reserve("neighbour", [(0, "1g.5gb", 0, 1)])
    env = lab.kubelet.allocate(lab.ids()[0])
    lab.set_status("neighbour", "Running", "running")
    lab.hardware.create_instance(0, "1g.5gb", 1)
    return env["NVIDIA_VISIBLE_DEVICES"]


def interrupt(lab: Lab, fault: Fault) -> bool:
    """Let the agent die in the middle of the Allocate of ``job``; False if it got through."""
    with lab.agent_process(**QUIET) as process:
        neighbour = prepare(lab)
        assert neighbour.startswith("MIG-")
        lab.reserve("job", [(0, "2g.10gb", 2, 2), (0, "3g.20gb", 4, 4)])
        lab.hardware.add_fault(fault)
        try:
            lab.kubelet.allocate(*lab.ids(3)[1:])
        except grpc.RpcError:
            assert process.wait(10) == KILLED_STATUS
            lab.hardware.clear_faults()
            return False
        lab.hardware.clear_faults()
        return True


def check_neighbours(lab: Lab) -> None:
    assert {(0, 1), (1, 1)} <= set(lab.placements())
    (kept,) = lab.reservations("neighbour")
    assert kept.identity is not None


@pytest.mark.parametrize("fault", NAMED, ids=fault_name)
def test_a_failed_pod_leaves_nothing_behind(lab: Lab, fault: Fault) -> None:
    assert not interrupt(lab, fault)
    lab.set_status("job", "Failed")
    with lab.agent_process(**QUIET):
        wait_until(lambda: lab.placements() == [(0, 1), (1, 1)], "the interrupted one is gone")
        wait_until(lambda: not lab.node_annotation(keys.NODE_LOCK), "the lock is free")
        check_neighbours(lab)


@pytest.mark.parametrize("fault", NAMED, ids=fault_name)
def test_a_repeated_call_finishes_what_was_interrupted(lab: Lab, fault: Fault) -> None:
    assert not interrupt(lab, fault)
    with lab.agent_process(**QUIET):
        check_finished(lab)


@pytest.mark.slow
@pytest.mark.parametrize("fault", NUMBERED, ids=fault_name)
def test_any_nvml_call_can_be_the_last(lab: Lab, fault: Fault) -> None:
    done = interrupt(lab, fault)
    with lab.agent_process(**QUIET):
        if not done:
            check_finished(lab)
        assert lab.placements() == [(0, 1), (1, 1), (2, 2), (4, 4)]
        check_neighbours(lab)


def check_finished(lab: Lab) -> None:
    env = lab.kubelet.allocate(*lab.ids(3)[1:])
    identities = [item.identity for item in lab.reservations("job")]
    assert env["NVIDIA_VISIBLE_DEVICES"] == ",".join(i.mig_uuid for i in identities if i)
    assert lab.placements() == [(0, 1), (1, 1), (2, 2), (4, 4)]
    assert lab.annotations("job")[keys.POD_BIND_PHASE] == "success"
    assert not lab.node_annotation(keys.NODE_LOCK)
    check_neighbours(lab)


def kill_during(lab: Lab, process: subprocess.Popen[bytes], match: RequestMatch) -> None:
    """Kill the agent while the API server has its request and has not answered."""
    lab.server.faults.delay(0.5, match)
    call = lab.kubelet.allocate_in_background(*lab.ids(3)[1:])
    wait_until(lambda: len(lab.placements()) == 4, "created")
    wait_until(lambda: not lab.server.faults._faults, "the request has arrived")
    process.kill()
    assert process.wait(10) == -9
    with pytest.raises(grpc.RpcError):
        call.result(10)


@pytest.mark.parametrize("resource", ["pods", "nodes"])
def test_a_kill_during_a_write_is_finished_by_the_repeated_call(lab: Lab, resource: str) -> None:
    with lab.agent_process(**QUIET) as process:
        prepare(lab)
        lab.reserve("job", [(0, "2g.10gb", 2, 2), (0, "3g.20gb", 4, 4)])
        kill_during(lab, process, RequestMatch(verb="patch", resource=resource))
    with lab.agent_process(**QUIET):
        check_finished(lab)


def test_a_lost_annotation_of_a_running_pod_is_added_at_the_next_start(lab: Lab) -> None:
    with lab.agent_process(**QUIET):
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        before = dict(lab.annotations("job"))
        lab.kubelet.allocate(lab.ids()[0])
        identity = lab.reservations("job")[0].identity
    lab.annotate("job", before)
    lab.set_status("job", "Running", "running")
    with lab.agent_process(**QUIET):
        wait_until(lambda: lab.reservations("job")[0].identity == identity, "identity is back")
        assert lab.annotations("job")[keys.POD_BIND_PHASE] == "success"
    assert lab.placements() == [(2, 2)]


DESTROYS = ("nvmlComputeInstanceDestroy", "nvmlGpuInstanceDestroy")
RECLAIMS = [Fault(name, kill=when) for name in DESTROYS for when in ("before", "after")]


@pytest.mark.parametrize("fault", RECLAIMS, ids=fault_name)
def test_an_interrupted_reclaim_is_finished_at_the_next_start(lab: Lab, fault: Fault) -> None:
    with lab.agent_process(**QUIET) as process:
        prepare(lab)
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        lab.kubelet.allocate(lab.ids(2)[1])
        lab.hardware.add_fault(fault)
        lab.delete("job")
        assert process.wait(10) == KILLED_STATUS
    lab.hardware.clear_faults()
    with lab.agent_process(**QUIET):
        wait_until(lambda: lab.placements() == [(0, 1), (1, 1)], "finished")
        wait_until(lambda: len(lab.journal()) == 1, "forgotten")
        check_neighbours(lab)
