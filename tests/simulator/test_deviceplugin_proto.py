"""The committed protobuf code is what its proto generates, and its wire format is the kubelet's."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest

from node_agent.deviceplugin import v1beta1_pb2, v1beta1_pb2_grpc

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path("node_agent/deviceplugin")
GENERATED = ("v1beta1_pb2.py", "v1beta1_pb2.pyi", "v1beta1_pb2_grpc.py")


def test_regenerating_gives_the_committed_files(tmp_path: Path) -> None:
    committed = (ROOT / FOLDER / "v1beta1_pb2_grpc.py").read_text()
    made_by = re.search(r"GRPC_GENERATED_VERSION = '([^']+)'", committed).group(1)
    installed = importlib.metadata.version("grpcio-tools")
    if installed != made_by:
        pytest.skip(f"grpcio-tools {installed} is installed, the files were made by {made_by}")
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", "."]
    command += [f"--{kind}_out={tmp_path}" for kind in ("python", "pyi", "grpc_python")]
    subprocess.run([*command, str(FOLDER / "v1beta1.proto")], cwd=ROOT, check=True)
    for name in GENERATED:
        assert (tmp_path / FOLDER / name).read_text() == (ROOT / FOLDER / name).read_text()


def test_allocate_response_has_the_field_numbers_of_the_kubelet() -> None:
    fields = v1beta1_pb2.ContainerAllocateResponse.DESCRIPTOR.fields
    assert {field.name: field.number for field in fields} == {
        "envs": 1,
        "mounts": 2,
        "devices": 3,
        "annotations": 4,
        "cdi_devices": 5,
    }


def test_register_request_is_encoded_as_the_kubelet_reads_it() -> None:
    request = v1beta1_pb2.RegisterRequest(
        version="v1beta1", endpoint="rec.sock", resource_name="nvidia.com/gpu"
    )
    request.options.get_preferred_allocation_available = True
    expected = b"\x0a\x07v1beta1\x12\x08rec.sock\x1a\x0envidia.com/gpu\x22\x02\x10\x01"
    assert request.SerializeToString() == expected


def test_methods_are_served_under_the_names_that_kubelets_call() -> None:
    services = v1beta1_pb2.DESCRIPTOR.services_by_name
    names = {service: sorted(services[service].methods_by_name) for service in services}
    assert names == {
        "Registration": ["Register"],
        "DevicePlugin": [
            "Allocate",
            "GetDevicePluginOptions",
            "GetPreferredAllocation",
            "ListAndWatch",
            "PreStartContainer",
        ],
    }
    assert services["DevicePlugin"].full_name == "v1beta1.DevicePlugin"
    assert v1beta1_pb2_grpc.DevicePluginStub is not None
