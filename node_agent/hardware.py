"""Opens NVML, real or simulated, and tells one life of the hardware from another."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from node_agent.journal import DriverLoad
from node_agent.nvml import simulated
from node_agent.nvml.driver import PynvmlDriver
from node_agent.nvml.ports import MigDriver

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_DRIVER_SECTION: Final = Path("/sys/module/nvidia/sections/.text")


def use_library(simulated_nvml: Path | None) -> None:
    """Choose the library for this process, before the first session."""
    if simulated_nvml is not None:
        simulated.install(simulated_nvml)


def open_driver() -> MigDriver:
    """A session with the chosen library. Raises ``DriverUnavailable`` when there is none."""
    return PynvmlDriver()


def current_load(simulated_nvml: Path | None) -> DriverLoad:
    """Boot id, and a mark that changes when the kernel loads the driver again.

    The mark is the address the kernel loaded the module to, which it chooses anew each time; where
    it cannot be read it is empty, and NVML's own facts alone decide.
    """
    if simulated_nvml is not None:
        node = simulated.SimulatedNode(simulated_nvml)
        try:
            return DriverLoad(node.boot_id(), str(node.driver_load()))
        finally:
            node.close()
    return DriverLoad(_text(_BOOT_ID), _text(_DRIVER_SECTION))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
