"""MIG mode: what a request brings about, by architecture and by who holds the GPU."""

from __future__ import annotations

import pytest

from node_agent.nvml.codes import NvmlCode
from node_agent.nvml.driver import PynvmlDriver
from node_agent.nvml.ports import DriverNotSupported, MigModeChange
from node_agent.nvml.simulated import GpuSpec, SimulatorError

ACTIVE = MigModeChange(0, current=True, pending=True)
AMPERE, HOPPER = "a100-sxm4-40gb", "h100-sxm5-80gb"


def enabled(node):
    with PynvmlDriver() as driver:
        return driver.enable_mig_mode(node.gpu_uuids()[0])


@pytest.mark.parametrize("model", [AMPERE, HOPPER])
def test_an_idle_gpu_takes_the_mode_at_once(make_node, model):
    assert enabled(make_node(GpuSpec(model, mig=False))) == ACTIVE


@pytest.mark.parametrize("model", [AMPERE, HOPPER])
def test_a_client_leaves_the_mode_pending(make_node, model):
    node = make_node(GpuSpec(model, mig=False))
    node.set_client(0)
    assert enabled(node) == MigModeChange(NvmlCode.IN_USE, current=False, pending=True)
    node.clear_clients(0)
    assert enabled(node) == ACTIVE


def test_a_process_leaves_the_mode_pending(make_node):
    node = make_node(GpuSpec(HOPPER, mig=False))
    node.attach(0)
    assert enabled(node).activation_status == NvmlCode.IN_USE


def test_a_passed_through_ampere_needs_a_reset(make_node):
    node = make_node(GpuSpec(AMPERE, mig=False, passthrough=True))
    wanted = MigModeChange(NvmlCode.RESET_REQUIRED, current=False, pending=True)
    assert enabled(node) == wanted


def test_an_ampere_without_automatic_reset_takes_the_mode_at_its_reset(make_node):
    node = make_node(GpuSpec(AMPERE, mig=False))
    node.set_options(ampere_auto_reset=False)
    assert enabled(node).activation_status == NvmlCode.RESET_REQUIRED
    node.reset(0)
    with PynvmlDriver() as driver:
        assert driver.gpus()[0].mig_active


def test_a_success_that_did_not_happen_shows_in_what_is_read_back(make_node):
    node = make_node(GpuSpec(HOPPER, mig=False))
    node.fail("nvmlDeviceSetMigMode", NvmlCode.SUCCESS)
    assert enabled(node) == MigModeChange(0, current=False, pending=False)


def test_a_gpu_without_mig_refuses_the_mode(make_node):
    node = make_node("l40s")
    with PynvmlDriver() as driver, pytest.raises(DriverNotSupported):
        driver.enable_mig_mode(node.gpu_uuids()[0])


def test_mig_stays_on_while_instances_exist(make_node):
    node = make_node(HOPPER)
    node.create_instance(0, "1g.10gb", 0)
    with pytest.raises(SimulatorError, match="IN_USE"):
        node.set_mig_mode(0, enabled=False)
    assert enabled(node) == ACTIVE


@pytest.mark.parametrize(("model", "survives"), [(AMPERE, True), (HOPPER, False)])
@pytest.mark.parametrize("event", ["reset", "reload_driver", "reboot"])
def test_only_ampere_keeps_the_mode_and_none_keeps_instances(make_node, model, survives, event):
    node = make_node(model)
    name = "1g.5gb" if model == AMPERE else "1g.10gb"
    node.create_instance(0, name, 0)
    getattr(node, event)(*([0] if event == "reset" else []))
    with PynvmlDriver() as driver:
        (gpu,) = driver.gpus()
        assert gpu.mig_active is survives
        assert driver.instances(gpu.uuid) == ()


def test_a_reboot_changes_the_boot_id_and_a_reload_the_driver_load(make_node):
    node = make_node(AMPERE)
    boot_id, load = node.boot_id(), node.driver_load()
    node.reload_driver()
    assert (node.boot_id(), node.driver_load()) == (boot_id, load + 1)
    node.reboot()
    assert node.boot_id() != boot_id


def test_the_end_of_the_session_keeps_mode_and_instances(make_node):
    node = make_node(HOPPER)
    uuid = node.gpu_uuids()[0]
    node.create_instance(0, "1g.10gb", 0)
    with PynvmlDriver() as driver:
        before = driver.instances(uuid)
    with PynvmlDriver() as driver:
        assert driver.instances(uuid) == before
        assert driver.gpu(uuid).mig_active
