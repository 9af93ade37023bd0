"""Which memory slices of one GPU are taken."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hami_web.core.capability import ProfileCapability
from hami_web.core.placement import Placement


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Taken memory slices as a bit mask; bit ``i`` stands for memory slice ``i``."""

    mask: int = 0

    @classmethod
    def of(cls, placements: Iterable[Placement]) -> Occupancy:
        """Occupancy of placements, which may overlap when the cluster is in conflict."""
        mask = 0
        for placement in placements:
            mask |= placement.mask
        return cls(mask)

    def admits(self, placement: Placement) -> bool:
        """True when no memory slice of the placement is taken."""
        return not self.mask & placement.mask

    def with_placement(self, placement: Placement) -> Occupancy:
        """The occupancy after one more placement."""
        return Occupancy(self.mask | placement.mask)

    def free_memory_slices(self, grid: int) -> int:
        """How many of the GPU's ``grid`` memory slices are free."""
        return grid - (self.mask & ((1 << grid) - 1)).bit_count()


def headroom(profile: ProfileCapability, occupancy: Occupancy) -> int:
    """Return how many more instances of one profile fit, alone, around what is taken.

    Taking intervals by earliest end is optimal for disjoint intervals. The instance limit of a
    special profile counts from zero: instances that exist are not known here.
    """
    count = 0
    reached = 0
    for placement in sorted(profile.placements, key=lambda p: (p.end, p.start)):
        if placement.start >= reached and occupancy.admits(placement):
            count += 1
            reached = placement.end
    return count if profile.instance_limit is None else min(count, profile.instance_limit)
