"""What one GPU can take of a request: numbers of each kind of device, and what they cost there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from hami_web.core.request import Demand
from hami_web.core.tables import Packing

FIELD: Final = 12
"""Bits per kind in a packed count; the highest is a guard. Counts stay below 2048."""
GUARD: Final = 1 << (FIELD - 1)


@dataclass(frozen=True, slots=True)
class Kind:
    """Equal devices of a Pod; ``numa`` binds them to one NUMA node."""

    demand: Demand
    count: int
    numa: int | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """Numbers of each kind on one GPU, packed in ``vector``, and their cost there."""

    vector: int
    devices: int
    level: int
    cost: int
    packing: Packing
    kinds: tuple[int, ...]
    """The kind of each placed instance, in the order of ``packing.placed``."""


def vectors(limits: Sequence[int], sizes: Sequence[int], room: int) -> Iterator[tuple[int, ...]]:
    """Counts within the limits, at least one device, that do not exceed the free slices."""
    for counts in product(*(range(limit + 1) for limit in limits)):
        if any(counts) and sum(n * size for n, size in zip(counts, sizes, strict=True)) <= room:
            yield counts


def total(packed: int, kinds: int) -> int:
    """Devices of all kinds in packed counts."""
    return sum((packed >> (FIELD * i)) & (GUARD - 1) for i in range(kinds))
