"""Would a set of instances fit on some GPUs of one model if everything could be moved?

The answer is exact and comes from the placements alone. The multisets that one GPU can hold span
a polytope; its facets are found once per model. Counts outside a facet never fit. Inside, one GPU
after another is given a multiset that leaves the rest inside, with backtracking, so that a yes
always comes with a way to do it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from operator import mul

from hami_web.core.tables import ProfileTable

Counts = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Facet:
    """``sum(weights * counts) <= bound`` for each GPU; whole numbers without a common factor."""

    weights: tuple[int, ...]
    bound: int


class CapacityOracle:
    """Capacity of GPUs that share one table, after any rearrangement."""

    def __init__(self, table: ProfileTable) -> None:
        self.table = table

    @cached_property
    def maximal(self) -> tuple[Counts, ...]:
        """The multisets that fit one empty GPU and take no further instance."""
        shapes = len(self.table.shapes)
        found: dict[int, set[Counts]] = {}

        def grow(state: int, counts: Counts) -> None:
            known = found.setdefault(state, set())
            if counts in known:
                return
            known.add(counts)
            for shape in self.table.shapes:
                for fit in self.table.fits(state, shape):
                    grow(fit.state, _with(counts, shape.index))

        grow(0, (0,) * shapes)
        every = set().union(*found.values())
        return tuple(
            sorted(
                counts
                for counts in every
                if not any(_with(counts, index) in every for index in range(shapes))
            )
        )

    @cached_property
    def facets(self) -> tuple[Facet, ...]:
        """What bounds the counts per GPU, beyond not being negative."""
        return tuple(_facets(self.maximal, len(self.table.shapes)))

    def within(self, counts: Sequence[int], gpus: int) -> bool:
        """True when no facet is exceeded: necessary, and on known models sufficient."""
        return all(
            sum(w * n for w, n in zip(facet.weights, counts, strict=True)) <= facet.bound * gpus
            for facet in self.facets
        )

    def fits(self, counts: Sequence[int], gpus: int) -> bool:
        """True when the counts per shape fit on so many empty GPUs together."""
        return self.arrangement(counts, gpus) is not None

    def arrangement(self, counts: Sequence[int], gpus: int) -> tuple[Counts, ...] | None:
        """A multiset for each GPU that together hold the counts, or None when there is none."""
        failed: set[tuple[Counts, int]] = set()

        def assign(left: Counts, remaining: int) -> list[Counts] | None:
            if not any(left):
                return [(0,) * len(left)] * remaining
            if remaining == 0 or (left, remaining) in failed or not self.within(left, remaining):
                return None
            for multiset in self._by_size:
                taken = tuple(min(a, b) for a, b in zip(multiset, left, strict=True))
                rest = tuple(a - b for a, b in zip(left, taken, strict=True))
                if self.within(rest, remaining - 1):
                    further = assign(rest, remaining - 1)
                    if further is not None:
                        further.append(taken)
                        return further
            failed.add((left, remaining))
            return None

        found = assign(tuple(counts), gpus)
        return None if found is None else tuple(reversed(found))

    @cached_property
    def _by_size(self) -> tuple[Counts, ...]:
        """Multisets with the largest instances first: small ones fill what is left."""
        return tuple(sorted(self.maximal, key=lambda counts: counts[::-1], reverse=True))


def _with(counts: Counts, index: int) -> Counts:
    return (*counts[:index], counts[index] + 1, *counts[index + 1 :])


@dataclass(frozen=True, slots=True)
class _Ray:
    """A ray ``(a, t)`` of the homogeneous polar, and a bit for each cut it lies on."""

    vector: tuple[int, ...]
    tight: int

    def side(self, cut: Sequence[int]) -> int:
        return sum(map(mul, cut, self.vector))


def _facets(points: Iterable[Counts], dimensions: int) -> Iterable[Facet]:
    """Facets ``a·x <= 1`` of all that is below some point: the vertices of the polar polytope.

    Double description: the polar starts as the cone ``a, t >= 0`` and is cut by ``a·p <= t`` for
    one point after another.
    """
    axes = range(dimensions + 1)
    everything = (1 << (dimensions + 1)) - 1
    rays = [
        _Ray(tuple(int(axis == other) for other in axes), everything ^ (1 << axis)) for axis in axes
    ]
    ordered = sorted(points, key=lambda point: (-sum(point), point))
    for number, point in enumerate(ordered, dimensions + 1):
        rays = _cut(rays, (*(-value for value in point), 1), number)
    vertices = {ray.vector for ray in rays if ray.vector[-1] and any(ray.vector[:-1])}
    for vertex in sorted(vertices):
        if not any(_covers(other, vertex) for other in vertices if other != vertex):
            yield Facet(vertex[:-1], vertex[-1])


def _cut(rays: Sequence[_Ray], cut: Sequence[int], number: int) -> list[_Ray]:
    """Keep what lies on the right side, and cut the edges that cross."""
    bit = 1 << number
    sides = [(ray, ray.side(cut)) for ray in rays]
    kept = [_Ray(ray.vector, ray.tight | (0 if side else bit)) for ray, side in sides if side >= 0]
    above = [(ray, side) for ray, side in sides if side > 0]
    below = [(ray, side) for ray, side in sides if side < 0]
    for high, up in above:
        for low, down in below:
            shared = high.tight & low.tight
            if any(
                shared & ray.tight == shared for ray in rays if ray is not high and ray is not low
            ):
                continue  # not neighbours: what lies between them is inside
            vector = [up * b - down * a for a, b in zip(high.vector, low.vector, strict=True)]
            divisor = gcd(*vector)
            kept.append(_Ray(tuple(value // divisor for value in vector), shared | bit))
    return kept


def _covers(other: Sequence[int], vertex: Sequence[int]) -> bool:
    """True when ``other`` bounds every axis at least as tightly."""
    return all(a * vertex[-1] >= b * other[-1] for a, b in zip(other, vertex, strict=True))
