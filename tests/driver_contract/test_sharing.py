"""Several processes on one node see one state, and a crash in any of them leaves it whole."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hami_web.core.placement import Placement
from node_agent.nvml.simulated import Fault

REALIZE = """
import sys
from pathlib import Path
from hami_web.core.placement import Placement
from node_agent.nvml.driver import PynvmlDriver
from node_agent.nvml.simulated import install
install(Path(sys.argv[1]))
with PynvmlDriver() as driver:
    gpu = driver.gpus()[0].uuid
    made = driver.create_gpu_instance(gpu, 14, Placement(2, 2))
    compute = driver.create_compute_instance(gpu, made.gpu_instance_id)
    print(compute.mig_uuid)
    if sys.argv[2:] == ["destroy"]:
        driver.destroy_compute_instance(gpu, made.gpu_instance_id, compute.compute_instance_id)
        driver.destroy_gpu_instance(gpu, made.gpu_instance_id)
"""


def realize_elsewhere(node, *arguments):
    command = [sys.executable, "-c", REALIZE, str(node.state_dir), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)


def test_what_another_process_creates_is_seen_at_once(node, driver, gpu):
    assert driver.instances(gpu) == ()
    uuid = realize_elsewhere(node).stdout.strip()
    (seen,) = driver.instances(gpu)
    assert (seen.placement, seen.compute_instances[0].mig_uuid) == (Placement(2, 2), uuid)


def test_what_another_process_destroys_is_gone_at_once(node, driver, gpu):
    realize_elsewhere(node)
    assert realize_elsewhere(node).returncode != 0
    (seen,) = driver.instances(gpu)
    node.destroy_instance(gpu, seen.gpu_instance_id)
    assert driver.instances(gpu) == ()


@pytest.mark.parametrize(
    ("function", "kill", "left"),
    [
        ("nvmlDeviceCreateGpuInstanceWithPlacement", "before", (0, 0)),
        ("nvmlDeviceCreateGpuInstanceWithPlacement", "after", (1, 0)),
        ("nvmlGpuInstanceCreateComputeInstance", "before", (1, 0)),
        ("nvmlGpuInstanceCreateComputeInstance", "after", (1, 1)),
        ("nvmlComputeInstanceDestroy", "before", (1, 1)),
        ("nvmlComputeInstanceDestroy", "after", (1, 0)),
        ("nvmlGpuInstanceDestroy", "before", (1, 0)),
        ("nvmlGpuInstanceDestroy", "after", (0, 0)),
    ],
)
def test_a_killed_process_leaves_what_it_had_done(node, driver, gpu, function, kill, left):
    """``left``: GPU instances and compute instances that exist afterwards."""
    node.add_fault(Fault(function, kill=kill))
    assert realize_elsewhere(node, "destroy").returncode == 137
    found = driver.instances(gpu)
    assert (len(found), sum(len(each.compute_instances) for each in found)) == left


def test_a_kill_can_wait_for_a_later_call(node, driver, gpu):
    node.add_fault(Fault("nvmlGpuInstanceGetInfo", kill="before", skip=1))
    assert realize_elsewhere(node).returncode == 137
    assert [each.compute_instances for each in driver.instances(gpu)] == [()]
