"""What arrives: profile mixes, durations, and the load that a cluster could carry at best."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hami_web.core.oracle import CapacityOracle
from hami_web.core.tables import ProfileTable

# Shares of an A100's profiles in order of size. The first four mixes are those of the MFI paper
# (arXiv 2511.18906), over 1g, 1g with double memory, 2g, 3g, 4g and 7g; the others are over HAMi's
# default allowlist, 1g, 2g, 3g and 7g, and run on GPUs that publish no more than those.
LITERATURE: Mapping[str, tuple[float, ...]] = {
    "uniform": (1 / 6,) * 6,
    "skew-small": (0.30, 0.25, 0.20, 0.10, 0.10, 0.05),
    "skew-big": (0.05, 0.10, 0.10, 0.20, 0.25, 0.30),
    "bimodal": (0.30, 0.15, 0.05, 0.05, 0.15, 0.30),
}
ALLOWLIST: Mapping[str, tuple[float, ...]] = {
    "hami-uniform": (0.25, 0.25, 0.25, 0.25),
    "hami-infer": (0.45, 0.30, 0.20, 0.05),
}
MIXES = {**LITERATURE, **ALLOWLIST}


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request: when it comes, which shape of the table it wants, and for how long."""

    time: float
    shape: int
    duration: float


Duration = Callable[[random.Random], float]


def exponential(rng: random.Random) -> float:
    """Mean 1."""
    return rng.expovariate(1.0)


def constant(_rng: random.Random) -> float:
    """Always 1."""
    return 1.0


def lognormal(rng: random.Random) -> float:
    """Mean 1 with a heavy tail."""
    sigma = 1.5
    return rng.lognormvariate(-sigma * sigma / 2, sigma)


def shares_of(mix: str, table: ProfileTable) -> tuple[float, ...]:
    """The mix over the shapes of a table.

    For a model with other profiles the shares go to its shapes by relative size, so that "small"
    stays small.
    """
    weights = MIXES[mix]
    plain = [shape for shape in table.shapes if not shape.profile.attribute]
    if len(plain) == len(weights):
        return weights
    relative = (1 / 8, 2 / 8, 2 / 8, 4 / 8, 4 / 8, 1.0)
    shares = [0.0] * len(table.shapes)
    for weight, size in zip(weights, relative, strict=True):
        nearest = min(plain, key=lambda s: (abs(s.memory_slices / table.grid - size), s.index))
        shares[nearest.index] += weight
    return tuple(shares)


def full_rate(shares: Sequence[float], oracle: CapacityOracle, gpus: int) -> float:
    """Arrivals per mean duration at load 1: the most that fits as a fluid after rearrangement."""
    return min(
        gpus * float(facet.bound) / used
        for facet in oracle.facets
        if (used := sum(float(w) * s for w, s in zip(facet.weights, shares, strict=True))) > 0
    )


def stream(
    shares: Sequence[float], rate: float, count: int, seed: str, duration: Duration = exponential
) -> list[Arrival]:
    """A Poisson stream; the same for every rule that is compared."""
    rng = random.Random(seed)
    shapes = rng.choices(range(len(shares)), shares, k=count)
    time = 0.0
    arrivals = []
    for shape in shapes:
        time += -math.log(1.0 - rng.random()) / rate
        arrivals.append(Arrival(time, shape, duration(rng)))
    return arrivals
