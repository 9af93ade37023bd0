"""Idle GPUs at the start: MIG mode on and old instances gone, or a clear word why not."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest

from hami_web.core import annotations as keys
from node_agent.nvml.simulated import GpuSpec
from node_agent.nvml.simulated.state import Fault
from tests.node_agent.lab import NODE, Lab, open_lab, wait_until

A100_OFF = GpuSpec("a100-sxm4-40gb", mig=False)
SET_MODE = "nvmlDeviceSetMigMode"


@pytest.fixture
def off() -> Iterator[Lab]:
    """A node with one A100 whose MIG mode is off."""
    with open_lab(A100_OFF) as made:
        yield made


def mode(lab: Lab, index: int = 0) -> tuple[bool, bool]:
    gpu = lab.hardware.gpu(index)
    return gpu.mig_current, gpu.mig_pending


def start_and_settle(lab: Lab, said: str = "", **changes: str) -> str:
    """Run an agent until it has looked at the node; returns what keeps it from serving."""
    with lab.starting_agent(**changes) as agent:
        wait_until(lambda: lab.node_annotation(keys.NODE_REGISTER) is not None, "published")
        wait_until(lambda: said in agent.problem(), f"said: {agent.problem()}")
        return agent.problem()


@pytest.mark.parametrize("model", ["a100-sxm4-40gb", "a30"])
def test_mig_mode_of_an_idle_gpu_is_turned_on_and_the_gpu_is_offered(model: str) -> None:
    with open_lab(GpuSpec(model, mig=False)) as lab, lab.agent():
        assert mode(lab) == (True, True)
        assert lab.kubelet.devices


def test_a_gpu_that_needs_a_reset_is_asked_once_and_reported(off: Lab) -> None:
    off.hardware.set_options(ampere_auto_reset=False)
    start_and_settle(off, "requested but not active")
    assert mode(off) == (False, True)
    off.hardware.fail(SET_MODE, 999, times=-1)
    start_and_settle(off, "requested but not active")
    assert off.hardware.state().faults[0].times == -1, "a second start does not ask again"
    off.hardware.clear_faults()
    off.hardware.reset(0)
    with off.agent():
        assert off.kubelet.devices


def test_a_gpu_with_a_client_is_not_switched_and_the_next_step_is_said(off: Lab) -> None:
    off.hardware.set_client(0)
    said = start_and_settle(off, "no device is offered")
    assert "requested but not active: stop what holds the GPU" in said
    assert mode(off) == (False, True)


def test_who_holds_the_gpu_is_said_and_the_mode_is_left(
    off: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    process = off.folder / "host/proc/4321"
    (process / "fd").mkdir(parents=True)
    (process / "comm").write_text("dcgm-exporter\n")
    (process / "fd/7").symlink_to("/dev/nvidia0")
    start_and_settle(off, "MIG mode is off", HAMI_DRIVER_ROOT=str(off.folder / "host"))
    assert "held by dcgm-exporter (4321)" in caplog.text
    assert mode(off) == (False, False)


def test_a_mode_that_ends_at_the_next_reset_is_left_to_people(lab: Lab) -> None:
    lab.hardware.set_client(0)
    lab.hardware.set_mig_mode(0, enabled=False)
    assert mode(lab) == (True, False)
    start_and_settle(lab, "MIG mode ends at the next reset")
    assert mode(lab) == (True, False)


@pytest.mark.parametrize("kind", ["passthrough", "vgpu_guest"])
def test_the_mode_of_a_virtual_machine_is_not_toggled(kind: str) -> None:
    with open_lab(GpuSpec("a100-sxm4-40gb", mig=False, **{kind: True})) as lab:
        said = start_and_settle(lab, "no device is offered")
        assert mode(lab) == (False, False)
        assert ("vGPU guest" in said) == (kind == "vgpu_guest")


@pytest.mark.parametrize(
    "reason", ["process", "reserved", "unnamed", "label", "off", "excluded", "unlisted", "refused"]
)
def test_a_gpu_that_may_be_in_use_keeps_its_mode(reason: str) -> None:
    model = "l40s" if reason == "unlisted" else "a100-sxm4-40gb"
    changes: dict[str, str] = {}
    with open_lab(GpuSpec(model, mig=False)) as lab:
        if reason == "process":
            lab.hardware.attach(0)
        if reason == "reserved":
            lab.create_pod("whole", 1)
            listed = f"{lab.gpus[0]},NVIDIA,40960,100:;"
            lab.bind("whole", {keys.POD_DEVICES_ALLOCATED: listed, keys.POD_NODE: NODE})
        if reason == "unnamed":
            lab.create_pod("whole", 1)
            lab.bind("whole", {})
        if reason == "label":
            labels = {"metadata": {"labels": {"nvidia.com/mig.config": "all-1g.5gb"}}}
            lab.client.patch(f"/api/v1/nodes/{NODE}", labels)
        if reason == "off":
            changes["HAMI_CLEAN_IDLE_GPUS"] = "false"
        if reason == "excluded":
            changes["HAMI_EXCLUDED_GPUS"] = lab.gpus[0]
        if reason == "refused":
            lab.hardware.add_fault(Fault(SET_MODE, code=4, times=-1))
        start_and_settle(lab, "no device is offered", **changes)
        assert mode(lab) == (False, False)


@pytest.mark.parametrize("by", ["uuid", "index"])
def test_an_excluded_gpu_is_neither_offered_nor_cleaned(two_gpus: Lab, by: str) -> None:
    lab = two_gpus
    lab.create_pod("stranger")
    lab.bind("stranger", {})
    for index in (0, 1):
        lab.hardware.create_instance(index, "1g.5gb", 3)
    excluded = lab.gpus[1] if by == "uuid" else "1"
    with lab.agent(HAMI_EXCLUDED_GPUS=f" {excluded} "):
        assert (lab.placements(0), lab.placements(1)) == ([], [(3, 1)])
        assert {device.rsplit("-", 1)[0] for device in lab.kubelet.devices} == {lab.gpus[0]}


def test_a_reservation_on_an_excluded_gpu_is_refused(two_gpus: Lab) -> None:
    lab = two_gpus
    with lab.agent(HAMI_EXCLUDED_GPUS="1"):
        lab.reserve("job", [(1, "1g.5gb", 6, 1)])
        with pytest.raises(grpc.RpcError) as refused:
            lab.kubelet.allocate(lab.ids()[0])
        assert "is excluded by HAMI_EXCLUDED_GPUS" in str(refused.value.details())
        assert lab.placements(1) == []


def test_an_instance_on_a_gpu_that_was_excluded_later_is_still_reclaimed(lab: Lab) -> None:
    with lab.agent():
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
    with lab.starting_agent(HAMI_EXCLUDED_GPUS="0"):
        lab.delete("job")
        wait_until(lambda: lab.placements() == [], "reclaimed")


def test_a_gpu_that_answers_late_is_adopted_without_a_journal(lab: Lab) -> None:
    """Unreadable at the start, and the journal lost: its instance is ours again, and reclaimed."""
    with lab.agent():
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
        lab.set_status("job", "Running", "running")
    (lab.folder / "state/instances.json").unlink()
    lab.hardware.fail("nvmlDeviceGetGpuInstances", 999, times=-1)
    with lab.starting_agent(HAMI_DISCOVERY_SECONDS="0.1") as agent:
        wait_until(lambda: "cannot be read" in agent.problem(), "said")
        lab.hardware.clear_faults()
        wait_until(lambda: not agent.problem(), "ready")
        assert len(lab.journal()) == 1
        lab.delete("job")
        wait_until(lambda: lab.placements() == [], "reclaimed")
