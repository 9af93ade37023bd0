"""Python's garbage collector beside a large state that is never garbage.

A full collection walks every tracked object: a second for a large cluster, in the middle of a
decision. Nothing here makes cycles, so collecting rarely costs nothing.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# Young objects between two collections of the youngest generation, and collections of one
# generation for each of the next: full ones become rare.
_THRESHOLDS: Final = (50_000, 20, 100)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Load much without collections: the objects made here are kept."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def settle() -> None:
    """Take everything that lives now out of the collector's sight; call it after a complete list.

    For servers: once at start-up after the first lists, and again after later ones. What the list
    took and nobody keeps goes back to the system, where the C library knows how (glibc does).
    """
    gc.set_threshold(*_THRESHOLDS)
    gc.collect()
    gc.freeze()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
