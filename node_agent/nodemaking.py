"""Sees to it that device nodes exist on the host before a kubelet is told to hand them over.

The kernel makes none of them; nvidia-modprobe and container runtimes do, and nobody on a node that
uses neither. They are made here, as nvidia-modprobe would, where configuration, driver and
operating system allow it, and waited for where one of them does not.
"""

from __future__ import annotations

import logging
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from node_agent.devicenodes import DeviceNode, waited
from node_agent.errors import DeviceNodeMissing
from node_agent.locks import Deadline

logger = logging.getLogger(__name__)

_FOLDER_MODE: Final = 0o755


@dataclass(frozen=True, slots=True)
class DeviceRoot:
    """The folder that holds the host's ``dev``: as this process sees it, and as the host does.

    ``make`` is False where nodes must not be made in it.
    """

    here: Path
    on_host: Path
    make: bool = True


class NodeMaker:
    """Makes device nodes under one root."""

    def __init__(self, root: DeviceRoot) -> None:
        self._root = root

    def ensure(self, node: DeviceNode, deadline: Deadline) -> str:
        """Let a node exist with its numbers; returns its path on the host.

        Raises :class:`DeviceNodeMissing`, with the reason why it was not made here, when it
        does not appear in time either.
        """
        path = self._root.here / node.path.lstrip("/")
        if not _is_there(path, node):
            why = self._make(path, node)
            missing = f"device node {path} ({node.major}:{node.minor}) does not appear"
            waited(lambda: _is_there(path, node) or None, f"{missing}{why}", deadline)
        return str(self._root.on_host / node.path.lstrip("/"))

    def _make(self, path: Path, node: DeviceNode) -> str:
        """Make it where that is allowed; returns why it was not, as the rest of a sentence."""
        if not self._root.make:
            return ", the agent must not make it (HAMI_MAKE_DEVICE_NODES is false), and nobody did"
        if not node.modify:
            return ", the driver forbids to make it (ModifyDeviceFiles is 0), and nobody did"
        try:
            _refuse_strangers(path)
            _make(path, node)
        except OSError as error:
            logger.info("device node %s is waited for, it cannot be made: %s", path, error)
            return f", the agent cannot make it ({error.strerror}), and nobody did"
        logger.info("made device node %s (%d:%d)", path, node.major, node.minor)
        return ""


def _is_there(path: Path, node: DeviceNode) -> bool:
    """A node of other numbers is one of an earlier driver load: the major is chosen anew."""
    try:
        found = path.stat()
    except OSError:
        return False
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == os.makedev(node.major, node.minor)


def _refuse_strangers(path: Path) -> None:
    """Only a device node may be replaced. Raises :class:`DeviceNodeMissing`."""
    with suppress(FileNotFoundError):
        if not stat.S_ISCHR(path.lstat().st_mode):
            raise DeviceNodeMissing(f"{path} is no device node; it is left alone")


def _make(path: Path, node: DeviceNode) -> None:
    """Whole or not at all: nobody sees a node without its owner and mode."""
    path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    os.mknod(draft, stat.S_IFCHR | 0o600, os.makedev(node.major, node.minor))
    try:
        os.chown(draft, node.uid, node.gid)
        draft.chmod(node.mode)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
