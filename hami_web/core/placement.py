"""Placements: half-open intervals of memory slices."""

from __future__ import annotations

from dataclasses import dataclass

from hami_web.core.errors import InvalidField


@dataclass(frozen=True, slots=True, order=True)
class Placement:
    """Half-open interval ``[start, start + size)`` of memory slices, as NVML reports it.

    Raises :class:`InvalidField` for a negative start or a size below one.
    """

    start: int
    size: int

    def __post_init__(self) -> None:
        if self.start < 0:
            raise InvalidField("placement.start", self.start, "an integer of 0 or more")
        if self.size < 1:
            raise InvalidField("placement.size", self.size, "an integer of 1 or more")

    @property
    def end(self) -> int:
        """First memory slice after the placement."""
        return self.start + self.size

    @property
    def mask(self) -> int:
        """Bit ``i`` is set when memory slice ``i`` belongs to the placement."""
        return ((1 << self.size) - 1) << self.start

    def overlaps(self, other: Placement) -> bool:
        """Two instances conflict exactly when their memory slices overlap."""
        return self.start < other.end and other.start < self.end

    def __str__(self) -> str:
        """``start:size``, as ``nvidia-smi mig -lgi`` writes it."""
        return f"{self.start}:{self.size}"
