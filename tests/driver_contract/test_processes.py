"""Who is on a GPU."""

from __future__ import annotations

import pytest

from node_agent.nvml.codes import NvmlCode
from node_agent.nvml.ports import DriverError, DriverProcess
from node_agent.nvml.simulated import Fault


@pytest.mark.parametrize("kind", ["compute", "graphics", "mps"])
def test_a_process_is_listed_once_with_its_instance(node, driver, gpu, kind):
    instance, _ = node.create_instance(gpu, "2g.10gb", 2)
    pid = node.attach(gpu, instance.gi_id, 0, kind=kind)
    assert driver.processes(gpu) == (DriverProcess(pid, instance.gi_id, 0),)


def test_a_process_on_the_whole_gpu_has_no_ids(node, driver, gpu):
    pid = node.attach(gpu, pid=4711)
    assert driver.processes(gpu) == (DriverProcess(pid, None, None),)


def test_processes_of_all_instances_are_listed_by_pid(node, driver, gpu):
    expected = []
    for pid, start in ((30, 0), (10, 1), (20, 2)):
        instance, _ = node.create_instance(gpu, "1g.5gb", start)
        node.attach(gpu, instance.gi_id, 0, pid=pid)
        expected.append(DriverProcess(pid, instance.gi_id, 0))
    assert driver.processes(gpu) == tuple(sorted(expected, key=lambda each: each.pid))


def test_a_list_that_grows_while_it_is_read_is_read_again(node, driver, gpu):
    instance, _ = node.create_instance(gpu, "1g.5gb", 0)
    pid = node.attach(gpu, instance.gi_id, 0)
    # The first call asks for the size: the fault hits the second one, which fetches the list.
    node.add_fault(
        Fault(
            "nvmlDeviceGetComputeRunningProcesses_v3",
            code=int(NvmlCode.INSUFFICIENT_SIZE),
            skip=1,
        )
    )
    assert [each.pid for each in driver.processes(gpu)] == [pid]


def test_a_list_that_cannot_be_had_is_an_error_and_not_empty(node, driver, gpu):
    node.create_instance(gpu, "1g.5gb", 0)
    node.fail("nvmlDeviceGetComputeRunningProcesses_v3", NvmlCode.UNKNOWN, skip=1)
    with pytest.raises(DriverError):
        driver.processes(gpu)


def test_a_driver_without_mps_lists_has_none(node, driver, gpu):
    node.set_options(hidden_symbols=["nvmlDeviceGetMPSComputeRunningProcesses_v3"])
    assert driver.processes(gpu) == ()
