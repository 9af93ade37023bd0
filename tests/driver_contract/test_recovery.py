"""The action that a driver asks for, on drivers that can tell and on those that cannot."""

from __future__ import annotations

import pytest

from node_agent.nvml.binding import ERRORS
from node_agent.nvml.ports import DriverError, DriverNotFound, MigDriver, RecoveryAction
from node_agent.nvml.simulated import SimulatedNode
from node_agent.nvml.simulated import node as simulated
from node_agent.nvml.simulated.state import RECOVERY_ACTIONS

FIELDS = "nvmlDeviceGetFieldValues"


@pytest.mark.parametrize("action", RECOVERY_ACTIONS)
def test_every_action_has_its_name(
    node: SimulatedNode, driver: MigDriver, gpu: str, action: str
) -> None:
    node.set_recovery_action(gpu, action)
    assert driver.recovery_action(gpu) is RecoveryAction[action.upper().replace("-", "_")]


def test_an_action_of_a_later_driver_is_not_taken_for_none(
    node: SimulatedNode, driver: MigDriver, gpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulated, "RECOVERY_ACTIONS", (*RECOVERY_ACTIONS, "later"))
    node.set_recovery_action(gpu, "later")
    assert driver.recovery_action(gpu) is RecoveryAction.OTHER


@pytest.mark.parametrize("recovery_field", ["unsupported", "unknown"])
def test_a_driver_without_the_field_cannot_tell(
    node: SimulatedNode, driver: MigDriver, gpu: str, recovery_field: str
) -> None:
    node.set_recovery_action(gpu, "gpu-reset")
    node.set_options(recovery_field=recovery_field)
    before = ERRORS.items()
    assert driver.recovery_action(gpu) is None
    assert ERRORS.items() == before, "an answer that means no is no error"


def test_a_library_without_the_function_cannot_tell(
    node: SimulatedNode, driver: MigDriver, gpu: str
) -> None:
    node.set_options(hidden_symbols=[FIELDS])
    assert driver.recovery_action(gpu) is None


def test_a_failing_read_is_an_error_and_not_none(
    node: SimulatedNode, driver: MigDriver, gpu: str
) -> None:
    node.fail(FIELDS, 999)
    with pytest.raises(DriverError) as caught:
        driver.recovery_action(gpu)
    assert (caught.value.code, caught.value.call) == (999, FIELDS)
    with pytest.raises(DriverNotFound):
        driver.recovery_action("GPU-00000000-0000-0000-0000-000000000000")


@pytest.mark.parametrize("life", ["reset", "reload", "reboot"])
def test_a_reset_ends_the_request(node: SimulatedNode, gpu: str, life: str) -> None:
    node.set_recovery_action(gpu, "gpu-reset")
    {"reset": lambda: node.reset(0), "reload": node.reload_driver, "reboot": node.reboot}[life]()
    assert node.gpu(gpu).recovery_action == 0
