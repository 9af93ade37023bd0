"""The driver's capability files under the node's root."""

from __future__ import annotations

import pytest


@pytest.fixture
def proc(node):
    return node.state_dir / "root/proc/driver"


def access_files(proc):
    root = proc / "nvidia/capabilities"
    return {str(each.relative_to(root)) for each in root.glob("gpu*/mig/**/access")}


def test_the_table_of_minors_lists_what_could_exist(proc):
    minors = dict(
        line.rsplit(" ", 1) for line in (proc / "nvidia-caps/mig-minors").read_text().splitlines()
    )
    assert (minors["config"], minors["monitor"]) == ("1", "2")
    assert (minors["gpu0/gi0/access"], minors["gpu0/gi0/ci0/access"]) == ("3", "4")
    assert minors["gpu1/gi11/ci5/access"] == "243"
    assert len(minors) == 2 + 2 * 15 * 9


def test_access_files_exist_for_live_instances_only(node, proc):
    assert access_files(proc) == set()
    instance, _ = node.create_instance(1, "1g.10gb", 2, compute=False)
    gi = f"gpu1/mig/gi{instance.gi_id}"
    assert access_files(proc) == {f"{gi}/access"}
    node.destroy_instance(1, instance.gi_id)
    other, _ = node.create_instance(1, "2g.20gb", 2)
    gi = f"gpu1/mig/gi{other.gi_id}"
    assert access_files(proc) == {f"{gi}/access", f"{gi}/ci0/access"}
    node.reboot()
    assert access_files(proc) == set()


def test_an_access_file_names_its_minor_and_mode(node, proc):
    instance, _ = node.create_instance(1, "1g.10gb", 0)
    text = (proc / f"nvidia/capabilities/gpu1/mig/gi{instance.gi_id}/ci0/access").read_text()
    minor = 3 + 135 + 9 * instance.gi_id + 1
    assert text == f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\nDeviceFileModify: 1\n"


def test_a_lost_gpu_has_no_access_files(node, proc):
    node.create_instance(0, "1g.5gb", 0)
    node.lose_gpu(0)
    assert access_files(proc) == set()
