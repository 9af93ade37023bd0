"""Device nodes of a MIG instance, as the driver's files under ``/proc`` name them.

Numbers are read, never computed: the table of minors is a detail of the driver. The ``access``
files exist only for instances that exist. Modes and owners are read too: the driver says how its
nodes are to be made, and whether anybody but udev may make them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from hami_web.core.reservation import RuntimeIdentity
from node_agent.errors import DeviceNodeMissing
from node_agent.locks import Deadline

_CAPS: Final = "nvidia-caps"
_CONTROL: Final = ("nvidia", "nvidia-frontend")
"""Names under which the driver registers its own major number, by version."""
_CONTROL_MINOR: Final = 255
_UVM: Final = "nvidia-uvm"
_WAIT_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.02
_MAJOR: Final = re.compile(r"^ *(\d+) +(\S+)$", re.MULTILINE)
_SETTING: Final = re.compile(r"^(\w+): (\d+)$", re.MULTILINE)
_PARAMETERS: Final = "proc/driver/nvidia/params"
_MODE: Final = 0o666
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, order=True)
class DeviceNode:
    """One character device as a container sees it.

    ``mode``, ``uid`` and ``gid`` are how the driver wants it made; ``modify`` is False where the
    driver was told that only the system's own rules may make it.
    """

    path: str
    major: int
    minor: int
    mode: int = _MODE
    uid: int = 0
    gid: int = 0
    modify: bool = True


class DeviceNodes:
    """Reads the driver's files under ``root``, which is ``/`` or where the host's is mounted."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def of_instance(
        self, gpu_minor: int, identity: RuntimeIdentity, deadline: Deadline
    ) -> tuple[DeviceNode, ...]:
        """All nodes that a container with this instance needs, those of the GPU first.

        Raises :class:`DeviceNodeMissing` when the driver does not show the instance in time.
        """
        folder = self._root / f"proc/driver/nvidia/capabilities/gpu{gpu_minor}/mig"
        instance = folder / f"gi{identity.gpu_instance_id}"
        paths = (instance / "access", instance / f"ci{identity.compute_instance_id}" / "access")
        access = [waited(partial(_access, p), f"{p} does not appear", deadline) for p in paths]
        majors = self._majors()
        if _CAPS not in majors:
            raise DeviceNodeMissing(f"{self._root}/proc/devices names no {_CAPS}")
        caps = (_capability_node(majors[_CAPS], settings) for settings in access)
        return (*self._of_gpu(gpu_minor, majors), *caps)

    def _of_gpu(self, gpu_minor: int, majors: dict[str, int]) -> tuple[DeviceNode, ...]:
        control = next((majors[name] for name in _CONTROL if name in majors), None)
        if control is None:
            raise DeviceNodeMissing(f"{self._root}/proc/devices names no nvidia")
        numbers = [
            ("/dev/nvidiactl", control, _CONTROL_MINOR),
            (f"/dev/nvidia{gpu_minor}", control, gpu_minor),
        ]
        if _UVM in majors:
            numbers += [
                ("/dev/nvidia-uvm", majors[_UVM], 0),
                ("/dev/nvidia-uvm-tools", majors[_UVM], 1),
            ]
        given = _settings(self._root / _PARAMETERS) or {}
        mode, modify = given.get("DeviceFileMode", _MODE), bool(given.get("ModifyDeviceFiles", 1))
        uid, gid = given.get("DeviceFileUID", 0), given.get("DeviceFileGID", 0)
        return tuple(DeviceNode(*each, mode, uid, gid, modify) for each in numbers)

    def _majors(self) -> dict[str, int]:
        path = self._root / "proc/devices"
        try:
            text = path.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise DeviceNodeMissing(f"{path} cannot be read: {error}") from error
        text = text.partition("Block devices:")[0]
        return {name: int(number) for number, name in _MAJOR.findall(text)}


def waited(look: Callable[[], Found | None], missing: str, deadline: Deadline) -> Found:
    """What ``look`` finds, asked again for some seconds. Raises :class:`DeviceNodeMissing`."""
    end = time.monotonic() + min(_WAIT_SECONDS, deadline.remaining)
    while (found := look()) is None:
        if time.monotonic() >= end:
            raise DeviceNodeMissing(f"{missing} within {_WAIT_SECONDS:g} s")
        time.sleep(_LOOK_SECONDS)
    return found


def _capability_node(major: int, settings: Mapping[str, int]) -> DeviceNode:
    minor = settings["DeviceFileMinor"]
    return DeviceNode(
        f"/dev/{_CAPS}/nvidia-cap{minor}",
        major,
        minor,
        mode=settings.get("DeviceFileMode", _MODE),
        modify=bool(settings.get("DeviceFileModify", 1)),
    )


def _access(path: Path) -> Mapping[str, int] | None:
    """An ``access`` file, None until it is there with its minor."""
    found = _settings(path)
    return found if found and "DeviceFileMinor" in found else None


def _settings(path: Path) -> Mapping[str, int] | None:
    """Lines ``Name: number``, all in decimal; None where the file cannot be read."""
    try:
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return None
    return {name: int(number) for name, number in _SETTING.findall(text)}
