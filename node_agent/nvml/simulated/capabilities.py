"""The driver's capability files of the simulated node, under a root directory of its own.

Beside them ``/proc/devices`` and the driver's parameters, as far as they are about device nodes.

``mig-minors`` lists every instance there could be, whether or not it exists; the ``access`` files
exist only for live instances. Minor numbers follow the table of NVIDIA's open kernel modules
(nv-caps.c): ``3 + 135 * gpu + 9 * gi`` for a GPU instance and one plus the CI id more for its
compute instances.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from node_agent.nvml.simulated.state import Gpu, Node

GPU_INSTANCE_IDS = range(15)
COMPUTE_INSTANCE_IDS = range(8)
_CONFIG_MINOR, _MONITOR_MINOR = 1, 2
_CONFIG_MODE, _READABLE_MODE = 0o400, 0o444
_CAPS_MAJOR = 235
_UVM_MAJOR = 511
_PARAMETERS = "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n"


def gpu_instance_minor(gpu_minor: int, gi_id: int) -> int:
    return 3 + 135 * gpu_minor + 9 * gi_id


def compute_instance_minor(gpu_minor: int, gi_id: int, ci_id: int) -> int:
    return gpu_instance_minor(gpu_minor, gi_id) + 1 + ci_id


def write_capability_files(root: Path, node: Node) -> None:
    """Bring the tree under ``root`` in line with the instances that exist."""
    _write_static_files(root, node)
    capabilities = root / "proc/driver/nvidia/capabilities"
    live = {gpu.minor: gpu for gpu in node.gpus if not gpu.lost}
    for directory in capabilities.glob("gpu*"):
        if int(directory.name.removeprefix("gpu")) not in live:
            shutil.rmtree(directory)
    for minor, gpu in live.items():
        _write_gpu(capabilities / f"gpu{minor}" / "mig", gpu)


def _write_static_files(root: Path, node: Node) -> None:
    minors = sorted(gpu.minor for gpu in node.gpus)
    table = root / "proc/driver/nvidia-caps/mig-minors"
    text = _minors_table(minors)
    if not table.exists() or table.read_text(encoding="ascii") != text:
        table.parent.mkdir(parents=True, exist_ok=True)
        table.write_text(text, encoding="ascii")
        (root / "proc/devices").write_text(
            f"Character devices:\n195 nvidia\n{_CAPS_MAJOR} nvidia-caps\n"
            f"{_UVM_MAJOR} nvidia-uvm\n\nBlock devices:\n259 blkext\n",
            encoding="ascii",
        )
        parameters = root / "proc/driver/nvidia/params"
        parameters.parent.mkdir(parents=True, exist_ok=True)
        parameters.write_text(_PARAMETERS, encoding="ascii")
        mig = root / "proc/driver/nvidia/capabilities/mig"
        _write_access(mig / "config", _CONFIG_MINOR, _CONFIG_MODE)
        _write_access(mig / "monitor", _MONITOR_MINOR, _READABLE_MODE)


def _minors_table(gpu_minors: list[int]) -> str:
    lines = [f"config {_CONFIG_MINOR}", f"monitor {_MONITOR_MINOR}"]
    for gpu in gpu_minors:
        for gi in GPU_INSTANCE_IDS:
            lines.append(f"gpu{gpu}/gi{gi}/access {gpu_instance_minor(gpu, gi)}")
            lines.extend(
                f"gpu{gpu}/gi{gi}/ci{ci}/access {compute_instance_minor(gpu, gi, ci)}"
                for ci in COMPUTE_INSTANCE_IDS
            )
    return "\n".join(lines) + "\n"


def _write_gpu(directory: Path, gpu: Gpu) -> None:
    wanted: dict[Path, int] = {}
    for instance in gpu.instances:
        path = directory / f"gi{instance.gi_id}"
        wanted[path / "access"] = gpu_instance_minor(gpu.minor, instance.gi_id)
        for ci in instance.compute_instances:
            wanted[path / f"ci{ci.ci_id}" / "access"] = compute_instance_minor(
                gpu.minor, instance.gi_id, ci.ci_id
            )
    present = set(directory.glob("gi*/access")) | set(directory.glob("gi*/ci*/access"))
    for path in sorted(present - wanted.keys(), key=lambda each: len(each.parts), reverse=True):
        path.unlink()
        path.parent.rmdir()
    for path in sorted(wanted.keys() - present):
        _write_access(path, wanted[path], _READABLE_MODE)


def _write_access(path: Path, minor: int, mode: int) -> None:
    """One file as the kernel shows it; the mode is printed in decimal."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"DeviceFileMinor: {minor}\nDeviceFileMode: {mode}\nDeviceFileModify: 1\n", encoding="ascii"
    )
