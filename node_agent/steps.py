"""How long the steps of one piece of work took, for what people are told when it took long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hami_web.core.tracing import span

SLOW_SECONDS: Final = 5.0
"""Work on an instance that took longer gets an event on its Pod."""


class Steps:
    """Times steps by name, in their order."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._took: dict[str, float] = {}

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Time the block, also when it fails."""
        began = time.monotonic()
        try:
            with span(name):
                yield
        finally:
            self._took[name] = time.monotonic() - began

    @property
    def slow(self) -> bool:
        return time.monotonic() - self._began > SLOW_SECONDS

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in self._took.items())
        return f"took {time.monotonic() - self._began:.1f} s: {parts}"
