"""The memory slices of a GPU as intervals in one state each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

FREE: Final = "free"
BLOCKED: Final = "blocked"


class Interval(Struct, frozen=True, gc=False):
    """Memory slices in one state. Conflicting reservations overlap; all others do not."""

    start: int
    size: int
    state: str
    profile: str = ""
    namespace: str = ""
    pod: str = ""
    detail: str = ""

    @property
    def mask(self) -> int:
        """A bit for each memory slice."""
        return ((1 << self.size) - 1) << self.start


def lay_out(
    memory_slices: int, claimed: list[Interval], blocked: Iterable[Interval]
) -> list[Interval]:
    """Reservations, what is blocked beside them, and every free memory slice, in order."""
    found, taken = claimed, 0
    for item in claimed:
        taken |= item.mask
    for item in blocked:
        if not taken & item.mask:
            found = [*found, item]
            taken |= item.mask
    free = [Interval(i, 1, FREE) for i in range(memory_slices) if not taken >> i & 1]
    return sorted([*found, *free], key=_place)


def _place(item: Interval) -> tuple[int, int, str]:
    return (item.start, item.size, item.pod)
