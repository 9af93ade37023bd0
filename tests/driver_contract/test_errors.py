"""Every error of NVML becomes one of ours, whatever the method and whatever the code."""

from __future__ import annotations

import inspect

import pynvml
import pytest

from hami_web.core.placement import Placement
from node_agent.nvml.binding import call_nvml
from node_agent.nvml.codes import NvmlCode
from node_agent.nvml.driver import PynvmlDriver
from node_agent.nvml.ports import (
    DriverError,
    DriverGpuLost,
    DriverInsufficientResources,
    DriverInUse,
    DriverInvalidArgument,
    DriverNoPermission,
    DriverNotFound,
    DriverNotSupported,
    DriverUnavailable,
    MigDriver,
)
from node_agent.nvml.reading import device_handle
from node_agent.nvml.simulated import Fault
from tests.driver_contract.calls import CALLS

CLASSES = {
    NvmlCode.UNINITIALIZED: DriverUnavailable,
    NvmlCode.INVALID_ARGUMENT: DriverInvalidArgument,
    NvmlCode.NOT_SUPPORTED: DriverNotSupported,
    NvmlCode.NO_PERMISSION: DriverNoPermission,
    NvmlCode.NOT_FOUND: DriverNotFound,
    NvmlCode.DRIVER_NOT_LOADED: DriverUnavailable,
    NvmlCode.FUNCTION_NOT_FOUND: DriverNotSupported,
    NvmlCode.GPU_IS_LOST: DriverGpuLost,
    NvmlCode.RESET_REQUIRED: DriverGpuLost,
    NvmlCode.LIB_RM_VERSION_MISMATCH: DriverUnavailable,
    NvmlCode.IN_USE: DriverInUse,
    NvmlCode.INSUFFICIENT_RESOURCES: DriverInsufficientResources,
    NvmlCode.UNKNOWN: DriverError,
}


def test_the_calls_below_are_all_methods_of_the_port():
    methods = {
        name
        for name, _ in inspect.getmembers(MigDriver, inspect.isfunction)
        if not name.startswith("_")
    }
    assert methods - {"close", "lost_indexes", "events"} == set(CALLS)


@pytest.mark.parametrize("code", [*CLASSES, 424])
@pytest.mark.parametrize("method", sorted(set(CALLS) - {"gpus"}))
def test_an_error_of_nvml_becomes_ours_with_its_code(node, driver, gpu, method, code):
    node.fail("nvmlDeviceGetHandleByUUID", code, times=-1)
    with pytest.raises(DriverError) as caught:
        CALLS[method](driver, gpu)
    assert type(caught.value) is CLASSES.get(code, DriverError)
    assert type(caught.value.code) in (int, NvmlCode)
    assert caught.value.code == code
    assert caught.value.call == "nvmlDeviceGetHandleByUUID"


@pytest.mark.parametrize("method", sorted(CALLS))
def test_no_exception_of_pynvml_is_left_in_the_chain(node, driver, gpu, method):
    node.fail("nvmlDeviceGetHandleByUUID", NvmlCode.UNKNOWN, times=-1)
    node.fail("nvmlDeviceGetCount_v2", NvmlCode.UNKNOWN, times=-1)
    with pytest.raises(DriverError) as caught:
        CALLS[method](driver, gpu)
    chain, error = [], caught.value
    while error is not None:
        chain.append(error)
        error = error.__cause__ or error.__context__
    assert not [each for each in chain if isinstance(each, pynvml.NVMLError)]


@pytest.mark.parametrize("function", ["nvmlGpuInstanceGetInfo", "nvmlComputeInstanceGetInfo_v2"])
def test_an_error_in_the_middle_of_a_listing_is_ours(node, driver, gpu, function):
    node.create_instance(gpu, "1g.5gb", 0)
    node.fail(function, NvmlCode.UNKNOWN)
    with pytest.raises(DriverError) as caught:
        driver.instances(gpu)
    assert caught.value.code == NvmlCode.UNKNOWN


def test_the_text_says_call_cause_and_code(node, driver, gpu):
    node.fail("nvmlDeviceGetHandleByUUID", NvmlCode.IN_USE)
    with pytest.raises(DriverInUse) as caught:
        driver.gpu(gpu)
    assert str(caught.value) == (
        "nvmlDeviceGetHandleByUUID: in use by a process, an instance or another client (code 19)"
    )


@pytest.mark.parametrize("method", sorted(set(CALLS) - {"gpus"}))
def test_a_lost_gpu_is_said_to_be_lost(node, driver, gpu, method):
    node.lose_gpu(0)
    with pytest.raises(DriverGpuLost):
        CALLS[method](driver, gpu)


@pytest.mark.parametrize(
    "method",
    sorted(set(CALLS) - {"gpus", "gpu", "guest", "recovery_action", "remaining_capacity"}),
)
def test_without_privilege_permission_is_missing(node, driver, gpu, method):
    node.set_options(permission="user")
    with pytest.raises(DriverNoPermission):
        CALLS[method](driver, gpu)


def test_only_an_absent_function_is_answered_with_the_older_one(node, driver, gpu):
    node.fail("nvmlDeviceGetGpuInstanceProfileInfoV", NvmlCode.UNKNOWN)
    with pytest.raises(DriverError) as caught:
        driver.profiles(gpu)
    assert caught.value.code == NvmlCode.UNKNOWN


def test_a_profile_that_the_gpu_does_not_support_is_left_out(node, driver, gpu):
    node.add_fault(Fault("nvmlDeviceGetGpuInstancePossiblePlacements_v2", code=3, times=1))
    assert "1g.5gb" not in {each.name for each in driver.profiles(gpu)}


def test_a_gpu_that_cannot_be_read_does_not_hide_the_others(make_node):
    node = make_node("a30", "a30")
    first, second = node.gpu_uuids()
    node.add_fault(Fault("nvmlDeviceGetName", code=int(NvmlCode.UNKNOWN), gpu_uuid=first))
    with PynvmlDriver() as driver:
        assert [each.uuid for each in driver.gpus()] == [second]
        assert driver.lost_indexes() == (0,)
        assert len(driver.gpus()) == 2
        assert driver.lost_indexes() == ()


def test_a_create_without_effect_is_no_success(node, driver, gpu):
    node.fail("nvmlDeviceCreateGpuInstanceWithPlacement", NvmlCode.SUCCESS)
    with pytest.raises(DriverInvalidArgument):
        driver.create_gpu_instance(gpu, 19, Placement(0, 1))
    assert driver.instances(gpu) == ()


def test_a_destroy_without_effect_leaves_the_instance_listed(node, driver, gpu):
    instance, _ = node.create_instance(gpu, "1g.5gb", 0, compute=False)
    node.fail("nvmlGpuInstanceDestroy", NvmlCode.SUCCESS)
    driver.destroy_gpu_instance(gpu, instance.gi_id)
    assert len(driver.instances(gpu)) == 1


def test_an_error_after_the_work_leaves_the_instance_there(node, driver, gpu):
    node.add_fault(
        Fault("nvmlDeviceCreateGpuInstanceWithPlacement", code=int(NvmlCode.UNKNOWN), effect=True)
    )
    with pytest.raises(DriverError):
        driver.create_gpu_instance(gpu, 19, Placement(0, 1))
    assert [each.placement for each in driver.instances(gpu)] == [Placement(0, 1)]


def test_in_use_lasts_as_many_attempts_as_injected(node, driver, gpu):
    instance, _ = node.create_instance(gpu, "1g.5gb", 0, compute=False)
    node.fail("nvmlGpuInstanceDestroy", NvmlCode.IN_USE, times=2)
    for _ in range(2):
        with pytest.raises(DriverInUse):
            driver.destroy_gpu_instance(gpu, instance.gi_id)
    driver.destroy_gpu_instance(gpu, instance.gi_id)
    assert driver.instances(gpu) == ()


def test_a_listing_that_changes_while_it_is_read_is_read_again(node, driver, gpu):
    node.create_instance(gpu, "1g.5gb", 0)
    node.fail("nvmlGpuInstanceGetInfo", NvmlCode.INVALID_ARGUMENT)
    assert len(driver.instances(gpu)) == 1


def test_a_listing_that_never_settles_is_an_error_and_not_empty(node, driver, gpu):
    node.create_instance(gpu, "1g.5gb", 0)
    node.fail("nvmlGpuInstanceGetInfo", NvmlCode.INVALID_ARGUMENT, times=-1)
    with pytest.raises(DriverInvalidArgument):
        driver.instances(gpu)


def test_a_library_without_a_function_supports_it_not(node, driver, gpu):
    """pynvml has a second family of exceptions for absent functions that have versions."""
    node.set_options(hidden_symbols=["nvmlDeviceGetMPSComputeRunningProcesses_v3"])
    with pytest.raises(DriverNotSupported) as caught:
        call_nvml("nvmlDeviceGetMPSComputeRunningProcesses", device_handle(gpu))
    assert caught.value.code == NvmlCode.FUNCTION_NOT_FOUND
