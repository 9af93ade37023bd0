"""The profiles of one GPU model as the tables see them: masks, sizes, limits and media engines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hami_web.core.capability import ProfileCapability
from hami_web.core.placement import Placement

# Media engines, as observed on GPUs that offer these attributes: one instance holds the optical
# flow engine, and after ``+me.all`` only profiles without media engines fit.
_ALL_ENGINES: Final = "+me.all"
_NO_ENGINES: Final = "-me"
_EXTENDED_ENGINES: Final = ("+me", _ALL_ENGINES)


@dataclass(frozen=True, slots=True)
class Shape:
    """One profile of the table. ``tokens`` are the state bits that count limited instances."""

    index: int
    profile: ProfileCapability
    placements: tuple[Placement, ...]
    masks: tuple[int, ...]
    memory_slices: int
    needs_clear: int
    sets: int
    tokens: int


def shapes_of(profiles: Sequence[ProfileCapability], grid: int) -> Iterable[Shape]:
    """Give the limited profiles their bits above the memory slices and the starts."""
    flow, some, all_engines = (1 << (2 * grid + bit) for bit in range(3))
    reached = 2 * grid + 3
    engines_matter = any(profile.attribute == _ALL_ENGINES for profile in profiles)
    for index, profile in enumerate(profiles):
        placements = tuple(sorted(profile.placements))
        masks = tuple(placement.mask for placement in placements)
        needs_clear = sets = tokens = 0
        if profile.attribute in _EXTENDED_ENGINES:
            needs_clear, sets = flow, flow
        if engines_matter and profile.attribute == _ALL_ENGINES:
            needs_clear |= some | all_engines
            sets |= all_engines
        elif engines_matter and profile.attribute != _NO_ENGINES:
            needs_clear |= all_engines
            sets |= some
        limit = profile.instance_limit
        if limit is not None and limit < len(placements):
            tokens = ((1 << limit) - 1) << reached
            reached += limit
        size = max((placement.size for placement in placements), default=0)
        yield Shape(index, profile, placements, masks, size, needs_clear, sets, tokens)


def take(shape: Shape, state: int) -> int:
    """The state with the bits beside the memory slices that one more instance takes."""
    free = shape.tokens & ~state
    return state | shape.sets | (free & -free)


def masks_by_end(shape: Shape) -> tuple[int, ...]:
    """Masks of the placements, earliest end first."""
    ends = sorted(shape.placements, key=lambda placement: (placement.end, placement.start))
    return tuple(placement.mask for placement in ends)


def most_disjoint(masks_by_end: Sequence[int], taken: int) -> int:
    """How many placements fit together around what is taken.

    Taking intervals by earliest end is optimal for disjoint intervals.
    """
    count = 0
    for mask in masks_by_end:
        if not taken & mask:
            taken |= mask
            count += 1
    return count
