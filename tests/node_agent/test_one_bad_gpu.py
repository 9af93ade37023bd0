"""One GPU that cannot work: a line that says why, and the rest of the node works."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from node_agent.nvml.simulated import Fault, GpuSpec
from tests.node_agent.lab import Lab, open_lab, wait_until
from tests.node_agent.test_told import condition

GOOD = "a100-sxm4-40gb"


def as_it_is(lab: Lab) -> None:
    """The model or its mode is the trouble."""


def pending(lab: Lab) -> None:
    """MIG mode was requested, and waits for a reset."""
    lab.hardware.set_options(ampere_auto_reset=False)
    lab.hardware.set_mig_mode(1, enabled=True)


def lost(lab: Lab) -> None:
    lab.hardware.lose_gpu(1)


def unreadable(lab: Lab) -> None:
    listing = "nvmlDeviceGetGpuInstances"
    lab.hardware.add_fault(Fault(listing, code=999, times=-1, gpu_uuid=lab.gpus[1]))


@pytest.mark.parametrize(
    ("second", "trouble", "code", "said"),
    [
        (GpuSpec(GOOD, vgpu_guest=True), as_it_is, "VgpuGuest", "its host decides"),
        ("b200-180gb", as_it_is, "NotListed", "is not in nvidia.migProfileAllowlist"),
        ("l40s", as_it_is, "NotMigCapable", "cannot do MIG"),
        (GpuSpec(GOOD, mig=False, passthrough=True), as_it_is, "MigModeOff", "-mig 1"),
        (GpuSpec(GOOD, mig=False), pending, "MigModePending", "--gpu-reset"),
        (GOOD, lost, "Lost", "the node needs attention"),
        (GOOD, unreadable, "Unreadable", "instances cannot be read"),
    ],
)
def test_its_cause_is_one_line_and_the_others_work(
    second: str | GpuSpec, trouble: Callable[[Lab], None], code: str, said: str
) -> None:
    """Nothing is reset or rebooted for it, and the agent goes on."""
    with open_lab(GOOD, second) as lab:
        trouble(lab)
        before = life(lab)
        with lab.agent() as agent:
            wait_until(lambda: said in condition(lab).get("message", ""), "said")
            assert condition(lab)["message"].count("\n") == 0
            assert (condition(lab)["status"], condition(lab)["reason"]) == (
                "True",
                "SomeGpusNotOffered",
            )
            assert agent.metrics.problems.labels(code)._value.get() == 1
            lab.reserve("job", [(0, "1g.5gb", 6, 1)])
            lab.kubelet.allocate(lab.ids()[0])
        assert life(lab) == before


def life(lab: Lab) -> tuple[str, int, int]:
    """What a reboot, a driver load or a reset of the second GPU would change."""
    hardware = lab.hardware
    return hardware.boot_id(), hardware.driver_load(), hardware.gpu(1).attach
