"""The state of a node: shared by processes, outliving them, and never half written."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hami_web.core.placement import Placement
from node_agent.nvml.simulated import SimulatedNode, SimulatorError

GRAB = """
import sys
from pathlib import Path
from hami_web.core.placement import Placement
from node_agent.nvml.driver import PynvmlDriver
from node_agent.nvml.ports import DriverInsufficientResources
from node_agent.nvml.simulated import install
install(Path(sys.argv[1]))
made = 0
with PynvmlDriver() as driver:
    gpu = driver.gpus()[0].uuid
    for start in range(7):
        try:
            driver.create_gpu_instance(gpu, 19, Placement(start, 1))
            made += 1
        except DriverInsufficientResources:
            pass
print(made)
"""


def test_the_state_outlives_those_who_made_it(node):
    instance, compute = node.create_instance(0, "2g.10gb", 4)
    node.close()
    later = SimulatedNode(node.state_dir)
    (found,) = later.gpu(0).instances
    later.close()
    assert found == instance
    assert found.compute_instances == [compute]


def test_processes_that_create_at_once_never_overlap(node):
    command = [sys.executable, "-c", GRAB, str(node.state_dir)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    made = [int(each.communicate(timeout=60)[0]) for each in running]
    found = node.gpu(0).instances
    assert sum(made) == len(found) == 7
    assert sorted(each.start for each in found) == list(range(7))
    assert len({each.gi_id for each in found}) == 7


def test_a_refused_change_changes_nothing(node):
    node.create_instance(0, "4g.20gb", 0)
    before = node.state()
    with pytest.raises(SimulatorError):
        node.create_instance(0, "7g.40gb", 0)
    assert node.state() == before


def test_a_writer_that_dies_before_the_rename_leaves_the_old_state(node):
    instance, _ = node.create_instance(0, "1g.5gb", 0)
    generation = node.state().generation
    (node.state_dir / "node.lock").write_bytes(b"%020d" % (generation + 1))
    (node.state_dir / "node.draft").write_bytes(b"{")
    assert [each.gi_id for each in node.gpu(0).instances] == [instance.gi_id]
    node.destroy_instance(0, instance.gi_id)
    assert node.gpu(0).instances == []


def test_a_damaged_state_is_said_to_be_damaged(node):
    (node.state_dir / "node.json").write_text("{")
    other = SimulatedNode(node.state_dir)
    with pytest.raises(SimulatorError, match="damaged"):
        other.state()
    other.close()


def test_a_state_of_another_version_is_refused(node):
    file = node.state_dir / "node.json"
    file.write_text(file.read_text().replace('"version": 1', '"version": 99'))
    other = SimulatedNode(node.state_dir)
    with pytest.raises(SimulatorError, match="99"):
        other.state()
    other.close()


def test_a_directory_without_a_node_is_named(tmp_path):
    with pytest.raises(SimulatorError, match=str(tmp_path)):
        SimulatedNode(tmp_path).state()


def test_equal_seeds_give_equal_uuids_and_others_do_not(tmp_path):
    uuids = []
    for name, seed in (("a", "same"), ("b", "same"), ("c", None)):
        made = SimulatedNode(tmp_path / name)
        made.create(["a30", "a30"], seed=seed)
        uuids.append(made.gpu_uuids())
        made.close()
    assert uuids[0] == uuids[1]
    assert len({*uuids[0], *uuids[2]}) == 4


def test_a_node_made_anew_forgets_the_old_one(node):
    node.create_instance(0, "1g.5gb", 0)
    node.create(["a30"])
    assert [each.model for each in node.state().gpus] == ["a30"]
    assert node.gpu(0).instances == []


def test_placements_have_the_core_type(node):
    instance, _ = node.create_instance(0, "1g.5gb", 3)
    assert Placement(instance.start, instance.size) == Placement(3, 1)
