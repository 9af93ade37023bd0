"""An upper bound for anything that could be accepted, even knowing all arrivals and durations.

The linear programme that accepts shares of requests within the capacity facets at every moment is
bounded from above by its Lagrangian dual: any prices on capacity give a valid bound, and
subgradient steps make it tight. No solver is needed, and the bound can only be too generous.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from hami_web.core.oracle import CapacityOracle
from tests.benchmarks.placement.mixes import Arrival


@dataclass(frozen=True, slots=True)
class _Request:
    """Active at the arrivals ``first … last - 1``; worth its memory slices."""

    first: int
    last: int
    worth: int
    uses: tuple[float, ...]


def most_slices(
    arrivals: Sequence[Arrival],
    oracle: CapacityOracle,
    gpus: int,
    *,
    reached: float,
    steps: int = 300,
) -> float:
    """At most so many memory slices can be accepted, on so many empty GPUs.

    ``reached`` is what some feasible way accepts; the steps are measured by it, the bound holds
    without it.
    """
    requests = _requests(arrivals, oracle, gpus)
    moments, facets = len(arrivals), len(oracle.facets)
    prices = [[0.0] * moments for _ in range(facets)]
    directions = [[0.0] * moments for _ in range(facets)]
    best = float(sum(request.worth for request in requests))
    for step in range(steps):
        bound, loads = _dual(requests, prices, moments)
        best = min(best, bound)
        norm = 0.0
        for row, load, direction in zip(prices, loads, directions, strict=True):
            for moment, used in enumerate(load):
                excess = used - 1.0
                if excess < 0 and not row[moment]:
                    excess = 0.0
                kept = direction[moment] = excess + 0.7 * direction[moment]
                norm += kept * kept
        size = (0.9 if step < steps // 2 else 0.4) * (bound - reached) / (norm or 1.0)
        for row, direction in zip(prices, directions, strict=True):
            for moment, kept in enumerate(direction):
                row[moment] = max(0.0, row[moment] + size * kept)
    return best


def _requests(arrivals: Sequence[Arrival], oracle: CapacityOracle, gpus: int) -> list[_Request]:
    times = [arrival.time for arrival in arrivals]
    sizes = [shape.memory_slices for shape in oracle.table.shapes]
    uses = [
        tuple(facet.weights[shape] / (facet.bound * gpus) for facet in oracle.facets)
        for shape in range(len(sizes))
    ]
    return [
        _Request(
            first,
            bisect_right(times, arrival.time + arrival.duration),
            sizes[arrival.shape],
            uses[arrival.shape],
        )
        for first, arrival in enumerate(arrivals)
    ]


def _dual(
    requests: Sequence[_Request], prices: Sequence[Sequence[float]], moments: int
) -> tuple[float, list[list[float]]]:
    """Value of the dual at some prices, and the load of each facet at each arrival."""
    sums = [[0.0, *accumulate(row)] for row in prices]
    changes = [[0.0] * (moments + 1) for _ in prices]
    bound = sum(row[-1] for row in sums)
    for request in requests:
        paid = sum(
            use * (row[request.last] - row[request.first])
            for use, row in zip(request.uses, sums, strict=True)
        )
        if request.worth > paid:
            bound += request.worth - paid
            for use, row in zip(request.uses, changes, strict=True):
                row[request.first] += use
                row[request.last] -= use
    return bound, [list(accumulate(row))[:-1] for row in changes]
