"""Registration: at once, again after every restart of the kubelet, with one live stream."""

from __future__ import annotations

import pytest

from hami_web.simulator.faults import RequestMatch
from node_agent.nvml.simulated import Fault
from tests.node_agent.lab import NODE, Lab, wait_until


def test_the_kubelet_is_told_resource_version_and_socket(lab: Lab) -> None:
    with lab.agent():
        request = lab.kubelet.registrations[0]
        assert (request.version, request.resource_name) == ("v1beta1", "nvidia.com/gpu")
        assert (lab.kubelet.folder / request.endpoint).is_socket()
        assert not lab.kubelet.options().get_preferred_allocation_available
        assert not lab.kubelet.options().pre_start_required


@pytest.mark.parametrize("restart", range(3))
def test_a_restarted_kubelet_gets_a_registration_and_the_devices_again(
    lab: Lab, restart: int
) -> None:
    with lab.agent():
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
        for count in range(2, 4 + restart):
            lab.kubelet.stop()
            lab.kubelet.start()
            wait_until(lambda count=count: len(lab.kubelet.registrations) == count, "registered")
            wait_until(lambda: len(lab.kubelet.devices) == 7, "devices offered")
        assert lab.placements() == [(6, 1)]


def test_the_kubelet_does_not_wait_for_slow_hardware(lab: Lab) -> None:
    """Nothing is offered, and no work is taken, before the node's state is known."""
    lab.hardware.add_fault(Fault("nvmlDeviceGetCount_v2", latency_s=0.7, times=1))
    with lab.starting_agent() as agent:
        wait_until(lambda: lab.kubelet.registrations, "registered", 0.5)
        assert lab.kubelet.devices == ()
        assert lab.lease_holder() != NODE
        wait_until(lambda: not agent.problem(), "ready")
        wait_until(lambda: lab.kubelet.devices, "offered")


def test_a_deleted_socket_is_served_again(lab: Lab) -> None:
    with lab.agent():
        (lab.kubelet.folder / lab.kubelet.registrations[0].endpoint).unlink()
        wait_until(lambda: len(lab.kubelet.registrations) == 2, "registered again")
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        assert lab.kubelet.allocate(lab.ids()[0])


def test_an_absent_kubelet_is_waited_for(lab: Lab) -> None:
    lab.kubelet.stop()
    with lab.starting_agent() as agent:
        wait_until(lambda: agent.problem() == "not registered with the kubelet", "waiting")
        lab.kubelet.start()
        wait_until(lambda: not agent.problem(), "ready")


def test_a_stopped_agent_leaves_instances_and_no_socket(lab: Lab) -> None:
    with lab.agent():
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
    assert lab.placements() == [(6, 1)]
    assert not list(lab.kubelet.folder.glob("hami-*.sock"))


def test_sigterm_lets_an_allocate_in_progress_end(lab: Lab) -> None:
    with lab.agent_process() as process:
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.server.faults.delay(0.5, RequestMatch(verb="patch", resource="pods"))
        call = lab.kubelet.allocate_in_background(lab.ids()[0])
        wait_until(lambda: lab.placements() == [(6, 1)], "created")
        process.terminate()
        assert call.result(10)["NVIDIA_VISIBLE_DEVICES"].startswith("MIG-")
        assert process.wait(10) == 0
    assert lab.annotations("job")["hami.io/bind-phase"] == "success"


def test_sigterm_ends_the_process_cleanly(lab: Lab) -> None:
    with lab.agent_process() as process:
        process.terminate()
        assert process.wait(10) == 0
    assert "instances stay as they are" in (lab.folder / "agent.log").read_text()
