"""Device nodes of a MIG instance, as the driver's files under ``/proc`` name them.

Numbers are read, never computed: the table of minors is a detail of the driver. The ``access``
files exist only for instances that exist; the nodes under ``/dev`` are made by nobody in
particular, so they are made here where that is allowed, and waited for where it is not.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from hami_web.core.reservation import RuntimeIdentity
from node_agent.errors import DeviceNodeMissing
from node_agent.locks import Deadline

logger = logging.getLogger(__name__)

_CAPS: Final = "nvidia-caps"
_CONTROL: Final = ("nvidia", "nvidia-frontend")
"""Names under which the driver registers its own major number, by version."""
_CONTROL_MINOR: Final = 255
_UVM: Final = "nvidia-uvm"
_WAIT_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.02
_MAJOR: Final = re.compile(r"^ *(\d+) +(\S+)$", re.MULTILINE)
_MINOR: Final = re.compile(r"^DeviceFileMinor: (\d+)$", re.MULTILINE)
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, order=True)
class DeviceNode:
    """One character device as a container sees it."""

    path: str
    major: int
    minor: int


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
        minors = [_waited(partial(_minor, p), f"{p} does not appear", deadline) for p in paths]
        majors = self._majors()
        if _CAPS not in majors:
            raise DeviceNodeMissing(f"{self._root}/proc/devices names no {_CAPS}")
        caps = (DeviceNode(f"/dev/{_CAPS}/nvidia-cap{n}", majors[_CAPS], n) for n in minors)
        return (*self._of_gpu(gpu_minor, majors), *caps)

    def ensure(self, node: DeviceNode, deadline: Deadline) -> str:
        """See to it that a node exists on the host; returns its path there.

        Raises :class:`DeviceNodeMissing` when it cannot be made and does not appear in time.
        """
        path = self._root / node.path.lstrip("/")
        if not _is_device(path):
            _make(path, node)
        _waited(lambda: _is_device(path) or None, f"device node {path} does not appear", deadline)
        return str(path)

    def _of_gpu(self, gpu_minor: int, majors: dict[str, int]) -> tuple[DeviceNode, ...]:
        control = next((majors[name] for name in _CONTROL if name in majors), None)
        if control is None:
            raise DeviceNodeMissing(f"{self._root}/proc/devices names no nvidia")
        nodes = [
            DeviceNode("/dev/nvidiactl", control, _CONTROL_MINOR),
            DeviceNode(f"/dev/nvidia{gpu_minor}", control, gpu_minor),
        ]
        if _UVM in majors:
            nodes += [
                DeviceNode("/dev/nvidia-uvm", majors[_UVM], 0),
                DeviceNode("/dev/nvidia-uvm-tools", majors[_UVM], 1),
            ]
        return tuple(nodes)

    def _majors(self) -> dict[str, int]:
        path = self._root / "proc/devices"
        try:
            text = path.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise DeviceNodeMissing(f"{path} cannot be read: {error}") from error
        text = text.partition("Block devices:")[0]
        return {name: int(number) for number, name in _MAJOR.findall(text)}


def _minor(path: Path) -> int | None:
    try:
        found = _MINOR.search(path.read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError):
        return None
    return int(found[1]) if found else None


def _is_device(path: Path) -> bool:
    try:
        return stat.S_ISCHR(path.stat().st_mode)
    except OSError:
        return False


def _make(path: Path, node: DeviceNode) -> None:
    """As ``nvidia-modprobe`` would; where this is not allowed, somebody else has to."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(node.major, node.minor))
    except FileExistsError:
        return
    except OSError as error:
        logger.info("device node %s is waited for, it cannot be made: %s", path, error)


def _waited(look: Callable[[], Found | None], missing: str, deadline: Deadline) -> Found:
    end = time.monotonic() + min(_WAIT_SECONDS, deadline.remaining)
    while (found := look()) is None:
        if time.monotonic() >= end:
            raise DeviceNodeMissing(f"{missing} within {_WAIT_SECONDS:g} s")
        time.sleep(_LOOK_SECONDS)
    return found
