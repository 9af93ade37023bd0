"""Placements: half-open intervals of memory slices."""

from __future__ import annotations

from dataclasses import dataclass, field

from hami_web.core.errors import InvalidField


@dataclass(frozen=True, slots=True, order=True)
class Placement:
    """Half-open interval ``[start, start + size)`` of memory slices, as NVML reports it.

    Bit ``i`` of ``mask`` is set when memory slice ``i`` belongs to the placement. Raises
    :class:`InvalidField` for a negative start or a size below one.
    """

    start: int
    size: int
    mask: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.start < 0:
            raise InvalidField("placement.start", self.start, "an integer of 0 or more")
        if self.size < 1:
            raise InvalidField("placement.size", self.size, "an integer of 1 or more")
        object.__setattr__(self, "mask", ((1 << self.size) - 1) << self.start)

    @property
    def end(self) -> int:
        """First memory slice after the placement."""
        return self.start + self.size

    def overlaps(self, other: Placement) -> bool:
        """Two instances conflict exactly when their memory slices overlap."""
        return self.start < other.end and other.start < self.end

    def __str__(self) -> str:
        """``start:size``, as ``nvidia-smi mig -lgi`` writes it."""
        return f"{self.start}:{self.size}"
