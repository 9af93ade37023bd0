"""Who holds a GPU's device node open, as far as this process can see.

Only for what people are told: where the host's processes are not visible (no ``hostPID``) the
answer is empty, which proves nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_SHOWN_MOST: Final = 5


def holders(driver_root: Path, minor: int) -> tuple[str, ...]:
    """Processes other than this one with ``/dev/nvidia<minor>`` open, as "name (pid)"."""
    device = f"/dev/nvidia{minor}"
    found: list[str] = []
    for folder in sorted((driver_root / "proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        if folder.name != str(os.getpid()) and _has_open(folder / "fd", device):
            found.append(f"{_name(folder)} ({folder.name})")
            if len(found) == _SHOWN_MOST:
                break
    return tuple(found)


def _has_open(descriptors: Path, device: str) -> bool:
    try:
        names = os.listdir(descriptors)
    except OSError:
        return False
    return any(_target(descriptors / name) == device for name in names)


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def _name(folder: Path) -> str:
    try:
        return (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "a process"
