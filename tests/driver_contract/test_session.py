"""The session: opened once, closed once, of one process, and nothing without a driver."""

from __future__ import annotations

import os
import threading
import time

import pytest

from node_agent.nvml.codes import NvmlCode
from node_agent.nvml.driver import PynvmlDriver
from node_agent.nvml.ports import DriverError, DriverUnavailable
from node_agent.nvml.simulated import Fault, install
from tests.driver_contract.calls import CALLS


@pytest.mark.parametrize("method", sorted(CALLS))
def test_nothing_works_after_close(driver, gpu, method):
    driver.close()
    with pytest.raises(DriverUnavailable, match="closed"):
        CALLS[method](driver, gpu)


def test_a_second_close_does_nothing(driver, gpu):
    with PynvmlDriver() as other:
        driver.close()
        driver.close()
        assert other.gpu(gpu).uuid == gpu


def test_close_waits_for_running_calls(node, driver, gpu):
    node.add_fault(Fault("nvmlDeviceGetName", latency_s=0.3))
    results = []
    caller = threading.Thread(target=lambda: results.append(driver.gpu(gpu).uuid))
    caller.start()
    deadline = time.monotonic() + 5
    while node.state().faults and time.monotonic() < deadline:
        time.sleep(0.005)
    driver.close()
    caller.join()
    assert results == [gpu]


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("not_loaded", NvmlCode.DRIVER_NOT_LOADED),
        ("library_missing", NvmlCode.LIBRARY_NOT_FOUND),
        ("mismatch", NvmlCode.LIB_RM_VERSION_MISMATCH),
    ],
)
def test_without_a_driver_there_is_no_session(node, state, code):
    node.set_options(driver=state)
    with pytest.raises(DriverUnavailable) as caught:
        PynvmlDriver()
    assert caught.value.code == code
    assert "\n" not in str(caught.value)


def test_without_a_node_the_driver_is_not_loaded(node, tmp_path):
    install(tmp_path / "elsewhere")
    with pytest.raises(DriverUnavailable):
        PynvmlDriver()


def test_a_driver_load_ends_the_session(node, driver, gpu):
    node.reload_driver()
    with pytest.raises(DriverUnavailable):
        driver.gpus()
    driver.close()
    with PynvmlDriver() as reopened:
        assert reopened.gpu(gpu).uuid == gpu


def test_a_forked_child_is_told_to_open_its_own_session(driver, gpu):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, _in_child(driver, gpu).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as answers:
        refused, own = answers.read().split("|")
    assert "a forked process opens its own" in refused
    assert own == gpu
    assert driver.gpu(gpu).uuid == gpu


def _in_child(driver, gpu):
    try:
        driver.gpus()
        refused = "nothing was refused"
    except DriverError as error:
        refused = str(error)
    driver.close()
    with PynvmlDriver() as own:
        return f"{refused}|{own.gpu(gpu).uuid}"


def test_threads_share_one_session(make_node):
    uuids = make_node("a30", "a30", "a30", "a30").gpu_uuids()
    found = {}
    with PynvmlDriver() as driver:
        threads = [
            threading.Thread(target=lambda each=each: found.update({each: driver.profiles(each)}))
            for each in uuids
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(found) == set(uuids)
    assert len({tuple(each) for each in found.values()}) == 1
