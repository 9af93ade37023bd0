"""Put the simulated library into pynvml for this process, and take it out again."""

from __future__ import annotations

from pathlib import Path

import pynvml

from node_agent.nvml.simulated.library import SimulatedLibrary


def install(state_dir: Path) -> SimulatedLibrary:
    """From here on pynvml of this process talks to the node in ``state_dir``.

    The node need not exist yet: until it does, calls say that the driver is not loaded. A library
    that is installed already is replaced. Open sessions of another library must be closed first.
    """
    uninstall()
    library = SimulatedLibrary(state_dir)
    with pynvml.libLoadLock:
        pynvml.nvmlLib = library
        pynvml._nvmlGetFunctionPointer_cache.clear()  # noqa: SLF001  (pynvml keeps old pointers)
    return library


def uninstall() -> None:
    """Undo :func:`install`; without one nothing happens. Sessions of it are over."""
    installed = pynvml.nvmlLib
    if not isinstance(installed, SimulatedLibrary):
        return
    with pynvml.libLoadLock:
        pynvml.nvmlLib = None
        pynvml._nvmlGetFunctionPointer_cache.clear()  # noqa: SLF001  (they point into the library)
        pynvml._nvmlLib_refcount = 0  # noqa: SLF001  (its sessions end with it)
    installed.close()
