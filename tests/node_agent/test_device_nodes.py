"""Device nodes on the host: made with the right numbers before the answer, or the call fails."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import grpc
import pytest

from node_agent import devicenodes, nodemaking
from node_agent.devicenodes import DeviceNode
from node_agent.errors import DeviceNodeMissing
from node_agent.locks import Deadline
from node_agent.nodemaking import DeviceRoot, NodeMaker
from node_agent.nvml.simulated.capabilities import compute_instance_minor, gpu_instance_minor
from tests.node_agent.lab import Lab, wait_until

SPECS = {"HAMI_DEVICE_LIST_STRATEGY": "device-specs"}
CAP = DeviceNode("/dev/nvidia-caps/nvidia-cap12", 235, 12, mode=0o444)


def may_make_nodes() -> bool:
    probe = Path(f"/tmp/hami-mknod-{os.getpid()}")
    try:
        os.mknod(probe, stat.S_IFCHR | 0o600, os.makedev(235, 12))
    except OSError:
        return False
    probe.unlink()
    return True


makes_nodes = pytest.mark.skipif(not may_make_nodes(), reason="needs CAP_MKNOD")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devicenodes, "_WAIT_SECONDS", 0.3)


def numbers(path: Path) -> tuple[int, int]:
    found = path.stat()
    assert stat.S_ISCHR(found.st_mode)
    return os.major(found.st_rdev), os.minor(found.st_rdev)


def ensure(root: Path, node: DeviceNode = CAP, *, make: bool = True) -> str:
    return NodeMaker(DeviceRoot(root, root, make=make)).ensure(node, Deadline(5.0))


@makes_nodes
def test_all_nodes_of_an_instance_exist_with_the_drivers_numbers_before_the_answer(
    lab: Lab,
) -> None:
    root = lab.folder / "nvml/root"
    with lab.agent(**SPECS, HAMI_HOST_DRIVER_ROOT="/"):
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        answer = lab.kubelet.answer(lab.ids()[0])
        (instance,) = lab.hardware.gpu(0).instances
        gi = gpu_instance_minor(0, instance.gi_id)
        ci = compute_instance_minor(0, instance.gi_id, 0)
        expected = {
            "/dev/nvidiactl": (195, 255),
            "/dev/nvidia0": (195, 0),
            "/dev/nvidia-uvm": (511, 0),
            "/dev/nvidia-uvm-tools": (511, 1),
            f"/dev/nvidia-caps/nvidia-cap{gi}": (235, gi),
            f"/dev/nvidia-caps/nvidia-cap{ci}": (235, ci),
        }
        assert {p: numbers(root / p.lstrip("/")) for p in expected} == expected
        paths = list(expected)
        assert [device.container_path for device in answer.devices] == paths
        assert [device.host_path for device in answer.devices] == paths, "as the host sees them"
        modes = [stat.S_IMODE((root / p.lstrip("/")).stat().st_mode) for p in paths]
        assert modes == [0o666] * 4 + [0o444] * 2
        assert stat.S_IMODE((root / "dev/nvidia-caps").stat().st_mode) == 0o755


@makes_nodes
def test_modes_and_owners_are_the_drivers_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        path = Path(ensure(tmp_path, DeviceNode("/dev/nvidia0", 195, 0, 0o660, 0, 44)))
    finally:
        os.umask(before)
    found = path.stat()
    assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (0o660, 0, 44)
    assert [entry.name for entry in path.parent.iterdir()] == ["nvidia0"]


@makes_nodes
def test_the_drivers_parameters_decide_about_its_nodes(lab: Lab) -> None:
    parameters = lab.folder / "nvml/root/proc/driver/nvidia/params"
    parameters.write_text(
        "Mobile: 4294967295\nModifyDeviceFiles: 1\nDeviceFileUID: 0\n"
        'DeviceFileGID: 44\nDeviceFileMode: 432\nRegistryDwords: ""\n'
    )
    with lab.agent(**SPECS):
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        answer = lab.kubelet.answer(lab.ids()[0])
        found = Path(answer.devices[1].host_path).stat()
        assert (stat.S_IMODE(found.st_mode), found.st_gid) == (0o660, 44)


@makes_nodes
def test_a_node_of_an_earlier_driver_load_is_replaced_and_a_right_one_kept(tmp_path: Path) -> None:
    path = Path(ensure(tmp_path, DeviceNode(CAP.path, 234, 12)))
    assert numbers(path) == (234, 12)
    ensure(tmp_path)
    assert numbers(path) == (235, 12)
    kept = path.stat().st_ino
    ensure(tmp_path)
    assert path.stat().st_ino == kept


def test_what_is_no_device_node_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / CAP.path.lstrip("/")
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(DeviceNodeMissing, match="is no device node"):
        ensure(tmp_path)
    assert path.read_text() == "mine"


def test_where_nodes_must_not_be_made_nothing_is_changed_and_the_call_says_so(lab: Lab) -> None:
    with lab.agent(**SPECS, HAMI_MAKE_DEVICE_NODES="false"):
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        with pytest.raises(grpc.RpcError) as refused:
            lab.kubelet.answer(lab.ids()[0])
        said = str(refused.value.details())
        assert "[mig.delivery.device-node]" in said
        assert "/dev/nvidiactl (195:255) does not appear" in said
        assert "HAMI_MAKE_DEVICE_NODES is false" in said
        assert lab.placements() == [], "taken back"
        assert not (lab.folder / "nvml/root/dev").exists()


def test_a_driver_that_forbids_it_is_obeyed(lab: Lab) -> None:
    parameters = lab.folder / "nvml/root/proc/driver/nvidia/params"
    parameters.write_text("ModifyDeviceFiles: 0\n")
    with lab.agent(**SPECS):
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        with pytest.raises(grpc.RpcError) as refused:
            lab.kubelet.answer(lab.ids()[0])
        assert "ModifyDeviceFiles is 0" in str(refused.value.details())
        assert not (lab.folder / "nvml/root/dev").exists()


def test_without_the_right_to_make_nodes_the_cause_is_said(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, mode: int, device: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(nodemaking.os, "mknod", refuse)
    with lab.agent(**SPECS):
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        with pytest.raises(grpc.RpcError) as refused:
            lab.kubelet.answer(lab.ids()[0])
        assert "cannot make it (Operation not permitted)" in str(refused.value.details())
        assert lab.placements() == []


@makes_nodes
def test_a_node_that_somebody_else_makes_in_time_is_taken(tmp_path: Path) -> None:
    other = threading.Timer(0.1, ensure, [tmp_path])
    other.start()
    assert numbers(Path(ensure(tmp_path, make=False))) == (235, 12)
    other.join()


@makes_nodes
def test_nodes_of_an_instance_that_is_made_anew_after_a_reboot_are_there_again(lab: Lab) -> None:
    root = lab.folder / "nvml/root"
    with lab.agent(**SPECS):
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        paths = [Path(d.host_path) for d in lab.kubelet.answer(lab.ids()[0]).devices]
        lab.set_status("job", "Running", "running")
    lab.hardware.reboot()
    for path in paths:
        path.unlink()
    with lab.agent(**SPECS):
        wait_until(lambda: lab.placements() == [(2, 2)], "made anew")
        wait_until(lambda: all(path.exists() for path in paths), f"nodes under {root}")
