"""What a container is given, by each of the three strategies, and what stays on the host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import grpc
import pytest

from node_agent import delivery, devicenodes
from node_agent.cdi import CdiFiles, device_name, lowest_version
from node_agent.devicenodes import DeviceNode
from node_agent.errors import DeliveryFailure
from node_agent.nvml.simulated.capabilities import compute_instance_minor, gpu_instance_minor
from tests.node_agent.lab import Lab, wait_until

NODE = DeviceNode("/dev/nvidia0", 195, 0)


def cdi(lab: Lab) -> dict[str, str]:
    return {"HAMI_DEVICE_LIST_STRATEGY": "cdi", "HAMI_CDI_DIR": str(lab.folder / "cdi")}


def files(lab: Lab) -> list[str]:
    return sorted(path.name for path in (lab.folder / "cdi").glob("*"))


def uuid_of(lab: Lab, pod: str = "job") -> str:
    identity = lab.reservations(pod)[0].identity
    assert identity is not None
    return identity.mig_uuid


def cap_nodes(lab: Lab, index: int = 0) -> list[tuple[str, int]]:
    """The capability nodes of the only instance, by the table of the driver."""
    (instance,) = lab.hardware.gpu(index).instances
    minor = lab.hardware.gpu(index).minor
    minors = (
        gpu_instance_minor(minor, instance.gi_id),
        compute_instance_minor(minor, instance.gi_id, 0),
    )
    return [(f"/dev/nvidia-caps/nvidia-cap{number}", number) for number in minors]


def test_a_cdi_file_describes_exactly_the_instance_before_the_answer(two_gpus: Lab) -> None:
    lab = two_gpus
    with lab.agent(**cdi(lab)):
        lab.reserve("job", [(1, "2g.10gb", 2, 2)])
        answer = lab.kubelet.answer(lab.ids(gpu=1)[0])
        uuid = uuid_of(lab)
        assert [device.name for device in answer.cdi_devices] == [f"hami.io/mig={uuid}"]
        assert answer.envs["NVIDIA_VISIBLE_DEVICES"] == "void"
        assert files(lab) == [f"hami.io-mig_{uuid}.json"]
        spec = json.loads((lab.folder / "cdi" / files(lab)[0]).read_text())
        assert (spec["cdiVersion"], spec["kind"]) == ("0.3.0", "hami.io/mig")
        (device,) = spec["devices"]
        nodes = device["containerEdits"]["deviceNodes"]
        assert device["name"] == uuid
        assert [(node["path"], node["minor"]) for node in nodes] == [
            ("/dev/nvidiactl", 255),
            ("/dev/nvidia1", 1),
            ("/dev/nvidia-uvm", 0),
            ("/dev/nvidia-uvm-tools", 1),
            *cap_nodes(lab, 1),
        ]
        assert {node["type"] for node in nodes} == {"c"}


def test_a_cdi_file_goes_only_after_its_instance(lab: Lab) -> None:
    with lab.agent(**cdi(lab)):
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        lab.kubelet.answer(lab.ids()[0])
        gi = lab.hardware.gpu(0).instances[0].gi_id
        process = lab.hardware.attach(0, gi, 0)
        lab.delete("job")
        wait_until(lambda: lab.journal()[0]["state"] == "reclaiming", "refused once")
        assert len(files(lab)) == 1
        lab.hardware.detach(process)
        wait_until(lambda: lab.journal() == [], "reclaimed")
        assert files(lab) == []


def test_cdi_files_are_rebuilt_at_the_start_and_others_left_alone(lab: Lab) -> None:
    with lab.agent(**cdi(lab)):
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        lab.kubelet.answer(lab.ids()[0])
    (name,) = files(lab)
    folder = lab.folder / "cdi"
    text = (folder / name).read_text()
    (folder / name).write_text("{")
    (folder / "hami.io-mig_MIG-gone.json").write_text("{}")
    (folder / "hami.io-mig_MIG-gone.json.new").write_text("{")
    (folder / "nvidia.yaml").write_text("kind: nvidia.com/gpu")
    with lab.agent(**cdi(lab)):
        assert files(lab) == [name, "nvidia.yaml"]
        assert (folder / name).read_text() == text


def test_a_start_does_not_wait_for_the_nodes_of_instances_that_are_gone(
    two_gpus: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = two_gpus
    monkeypatch.setattr(delivery, "_REBUILD_SECONDS", 60.0)
    monkeypatch.setattr(devicenodes, "_WAIT_SECONDS", 60.0)
    with lab.agent(**cdi(lab)):
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        lab.kubelet.answer(lab.ids()[0])
    lab.hardware.destroy_instance(0, lab.hardware.gpu(0).instances[0].gi_id)
    with lab.agent(**cdi(lab)):
        assert lab.placements() == [], "it is not made anew"


def test_files_of_running_pods_stay_when_the_strategy_changes(lab: Lab) -> None:
    with lab.agent(**cdi(lab)):
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        lab.kubelet.answer(lab.ids()[0])
    with lab.agent(HAMI_CDI_DIR=str(lab.folder / "cdi")):
        assert len(files(lab)) == 1
        lab.delete("job")
        wait_until(lambda: lab.journal() == [], "reclaimed")
        assert files(lab) == []


def test_an_instance_whose_device_nodes_do_not_appear_is_taken_back(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devicenodes, "_WAIT_SECONDS", 0.2)
    root = lab.folder / "host"
    (root / "proc").mkdir(parents=True)
    with lab.agent(**cdi(lab), HAMI_DRIVER_ROOT=str(root)):
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        with pytest.raises(grpc.RpcError) as refused:
            lab.kubelet.answer(lab.ids()[0])
        assert "[mig.delivery.device-node]" in str(refused.value.details())
        assert "does not appear" in str(refused.value.details())
        assert lab.placements() == []
        assert files(lab) == []


def test_a_repeated_call_delivers_again(lab: Lab) -> None:
    with lab.agent(**cdi(lab)):
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        first = lab.kubelet.answer(lab.ids()[0])
        (lab.folder / "cdi" / files(lab)[0]).unlink()
        assert lab.kubelet.answer(lab.ids()[0]) == first
        assert len(files(lab)) == 1


def test_a_folder_that_cannot_be_written_fails_the_call_and_takes_back(lab: Lab) -> None:
    (lab.folder / "cdi").write_text("a file")
    with lab.agent(**cdi(lab)):
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        with pytest.raises(grpc.RpcError) as refused:
            lab.kubelet.answer(lab.ids()[0])
        assert "mig.delivery.cdi" in str(refused.value.details())
        # The file in the way is no folder, so nothing of ours can be in it.
        (lab.folder / "cdi").unlink()
        wait_until(lambda: lab.placements() == [], "taken back")


@pytest.mark.parametrize(
    ("edits", "version"),
    [
        ({}, "0.3.0"),
        ({"env": ["A=1"], "hooks": [{"hookName": "createContainer", "path": "/x"}]}, "0.3.0"),
        ({"mounts": [{"hostPath": "/a", "containerPath": "/a", "type": "bind"}]}, "0.4.0"),
        ({"deviceNodes": [{"path": "/dev/a", "hostPath": "/dev/b"}]}, "0.5.0"),
        ({"additionalGids": [1]}, "0.7.0"),
        ({"intelRdt": {"closID": "x"}}, "0.7.0"),
        ({"netDevices": [{"hostInterfaceName": "a"}]}, "1.1.0"),
    ],
)
def test_the_declared_version_is_the_lowest_that_covers_the_fields(
    tmp_path: Path, edits: dict[str, Any], version: str
) -> None:
    base = tmp_path / "base.json"
    base.write_text(json.dumps({"cdiVersion": "1.1.0", "containerEdits": edits}))
    assert ".".join(map(str, lowest_version(edits))) == version
    CdiFiles(tmp_path / "cdi", base).write("MIG-a", [NODE])
    (path,) = (tmp_path / "cdi").iterdir()
    spec = json.loads(path.read_text())
    assert spec["cdiVersion"] == version
    assert spec.get("containerEdits", {}) == edits


def test_a_field_of_the_base_that_is_not_known_keeps_its_version(tmp_path: Path) -> None:
    base = tmp_path / "base.yaml"
    base.write_text("cdiVersion: 1.2.0\ncontainerEdits: {future: [x]}\n")
    CdiFiles(tmp_path / "cdi", base).write("MIG-a", [NODE])
    (path,) = (tmp_path / "cdi").iterdir()
    assert json.loads(path.read_text())["cdiVersion"] == "1.2.0"


@pytest.mark.parametrize("text", ["", "[", "cdiVersion: x\n", "containerEdits: []\n"])
def test_a_base_that_cannot_be_used_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "base.yaml").write_text(text)
    with pytest.raises(DeliveryFailure, match=r"base\.yaml cannot be used"):
        CdiFiles(tmp_path / "cdi", tmp_path / "base.yaml").write("MIG-a", [NODE])


def test_an_old_style_uuid_becomes_a_legal_cdi_name() -> None:
    assert device_name("MIG-GPU-1f2a/7/0") == "MIG-GPU-1f2a_7_0"
