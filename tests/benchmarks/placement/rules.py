"""Placement rules on a simulated cluster: ours, HAMi's, and those that were published.

A rule sees GPUs of one model as masks of taken memory slices and answers with a GPU and the mask
of the new instance. Rules whose choice depends on the mask alone are tables over masks.
"""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from hami_web.core.oracle import CapacityOracle
from hami_web.core.policies import Rule
from hami_web.core.policy_names import CAP_LOSS
from hami_web.core.tables import ProfileTable

GPUS_PER_NODE: Final = 8
Choice = tuple[int, int]
Score = tuple[float, ...]
ScoreOf = Callable[[ProfileTable, int, int, int], Score | None]
"""Rank of an instance (shape, mask) on a GPU in a state; None where it may not go."""


class Placer(Protocol):
    """A cluster under one rule."""

    def place(self, shape: int) -> Choice | None:
        """Take a place for an instance, or None when the rule finds none."""
        ...

    def release(self, choice: Choice, shape: int) -> None:
        """The instance is over."""
        ...


class ByMask:
    """Least score over (state of a GPU, bits of the instance); equal scores by GPU index.

    States are masks of taken memory slices; with ``starts`` they also mark where instances start,
    as the product's tables do.
    """

    def __init__(
        self, table: ProfileTable, gpus: int, score: ScoreOf, *, starts: bool = False
    ) -> None:
        self._table = table
        self._score = score
        self._bits = [
            [mask | ((mask & -mask) << table.grid if starts else 0) for mask in shape.masks]
            for shape in table.shapes
        ]
        self._masks = [0] * gpus
        self._having: dict[int, list[int]] = {0: list(range(gpus))}
        self._orders: dict[int, list[tuple[Score, int, int]]] = {}
        self._known: set[int] = set()
        for shape in range(len(table.shapes)):
            self._orders[shape] = []
        self._learn(0)

    def place(self, shape: int) -> Choice | None:
        best: tuple[Score, int, int] | None = None
        for score, taken, mask in self._orders[shape]:
            if best is not None and score > best[0]:
                break
            having = self._having[taken]
            if having and (best is None or having[0] < best[1]):
                best = (score, having[0], mask)
        if best is None:
            return None
        self._move(best[1], self._masks[best[1]] | best[2])
        return best[1], best[2]

    def release(self, choice: Choice, shape: int) -> None:
        gpu, mask = choice
        self._move(gpu, self._masks[gpu] & ~mask)

    def _move(self, gpu: int, mask: int) -> None:
        self._having[self._masks[gpu]].remove(gpu)
        self._masks[gpu] = mask
        if mask not in self._known:
            self._learn(mask)
        insort(self._having.setdefault(mask, []), gpu)

    def _learn(self, taken: int) -> None:
        self._known.add(taken)
        self._having.setdefault(taken, [])
        for shape in self._table.shapes:
            scored = [
                (score, mask)
                for mask in self._bits[shape.index]
                if not mask & taken
                and (score := self._score(self._table, taken, shape.index, mask)) is not None
            ]
            if scored:
                score, mask = min(scored)
                insort(self._orders[shape.index], (score, taken, mask))


class ByIndex:
    """The first GPU that has a place at all; the start by a score on its mask."""

    def __init__(self, table: ProfileTable, gpus: int) -> None:
        self._table = table
        self._masks = [0] * gpus

    def place(self, shape: int) -> Choice | None:
        masks = self._table.shapes[shape].masks
        for gpu, taken in enumerate(self._masks):
            for mask in masks:
                if not mask & taken:
                    self._masks[gpu] |= mask
                    return gpu, mask
        return None

    def release(self, choice: Choice, shape: int) -> None:
        gpu, mask = choice
        self._masks[gpu] &= ~mask


class AtRandom:
    """Any GPU and start that fit."""

    def __init__(self, table: ProfileTable, gpus: int) -> None:
        self._table = table
        self._masks = [0] * gpus
        self._rng = random.Random("at random")

    def place(self, shape: int) -> Choice | None:
        masks = self._table.shapes[shape].masks
        for gpu in self._rng.sample(range(len(self._masks)), len(self._masks)):
            free = [mask for mask in masks if not mask & self._masks[gpu]]
            if free:
                mask = self._rng.choice(free)
                self._masks[gpu] |= mask
                return gpu, mask
        return None

    def release(self, choice: Choice, shape: int) -> None:
        gpu, mask = choice
        self._masks[gpu] &= ~mask


class Hami:
    """HAMi v2.10: nodes by what is booked, most first; then GPUs by the same, by policy.

    Booked is instances over ``Count``, cores, and memory. From high starts for one and three
    compute slices, from low ones otherwise; ``start`` replaces that for later versions.
    """

    def __init__(
        self,
        table: ProfileTable,
        gpus: int,
        *,
        gpu_binpack: bool = False,
        count: int = 7,
        start: Callable[[ProfileTable, int, int], int | None] | None = None,
    ) -> None:
        self._table = table
        self._masks = [0] * gpus
        self._booked = [0.0] * gpus
        self._nodes = [
            range(first, min(first + GPUS_PER_NODE, gpus))
            for first in range(0, gpus, GPUS_PER_NODE)
        ]
        # Nodes in HAMi's order: most booked first, equal ones by number.
        self._keys = [(0.0, node) for node in range(len(self._nodes))]
        self._order = list(self._keys)
        self._sign = 1.0 if gpu_binpack else -1.0
        self._start = start or hami_start
        self._starts: list[dict[int, int | None]] = [{} for _ in table.shapes]
        self._shares = [
            1 / count + s.profile.core_percent / 100 + s.profile.memory_mib / table.memory_mib
            for s in table.shapes
        ]

    def place(self, shape: int) -> Choice | None:
        for _, node in self._order:
            chosen = self._on_node(shape, node)
            if chosen is not None:
                self._book(*chosen, shape, 1.0)
                return chosen
        return None

    def release(self, choice: Choice, shape: int) -> None:
        self._book(*choice, shape, -1.0)

    def _on_node(self, shape: int, node: int) -> Choice | None:
        starts = self._starts[shape]
        best_score, best_gpu, best_mask = 0.0, -1, 0
        for gpu in self._nodes[node]:
            taken = self._masks[gpu]
            if taken not in starts:
                starts[taken] = self._start(self._table, shape, taken)
            mask = starts[taken]
            if mask is None:
                continue
            score = self._sign * self._booked[gpu]
            if best_gpu < 0 or score >= best_score:  # of equal ones the last
                best_score, best_gpu, best_mask = score, gpu, mask
        return None if best_gpu < 0 else (best_gpu, best_mask)

    def _book(self, gpu: int, mask: int, shape: int, sign: float) -> None:
        self._masks[gpu] ^= mask
        booked = self._booked[gpu] + sign * self._shares[shape]
        # Rounded, or equal scores would differ by the order in which they were summed.
        self._booked[gpu] = round(booked, 9) if self._masks[gpu] else 0.0
        node = gpu // GPUS_PER_NODE
        gpus = self._nodes[node]
        del self._order[bisect_left(self._order, self._keys[node])]
        mean = sum(map(self._booked.__getitem__, gpus)) / len(gpus)
        self._keys[node] = (-round(mean, 9), node)
        insort(self._order, self._keys[node])


class Repack:
    """Everything may be moved at any time: the limit of what placement can reach."""

    def __init__(self, table: ProfileTable, gpus: int) -> None:
        self._oracle = CapacityOracle(table)
        self._gpus = gpus
        self._counts = [0] * len(table.shapes)

    def place(self, shape: int) -> Choice | None:
        self._counts[shape] += 1
        if self._oracle.within(self._counts, self._gpus):
            return 0, 0
        self._counts[shape] -= 1
        return None

    def release(self, choice: Choice, shape: int) -> None:
        self._counts[shape] -= 1


def hami_start(table: ProfileTable, shape: int, taken: int) -> int | None:
    """HAMi's start: from the top for 1g and 3g, from the bottom otherwise."""
    free = [mask for mask in table.shapes[shape].masks if not mask & taken]
    if not free:
        return None
    return max(free) if table.shapes[shape].profile.compute_slices in (1, 3) else min(free)


def scored_start(table: ProfileTable, shape: int, taken: int) -> int | None:
    """HAMi PR 2855, from its description: largest free run left, then most placements left."""
    free = [mask for mask in table.shapes[shape].masks if not mask & taken]
    if not free:
        return None

    def left(mask: int) -> tuple[int, int, int]:
        after = taken | mask
        run = max(len(part) for part in f"{after:0{table.grid}b}".split("1"))
        placements = sum(not other & after for s in table.shapes for other in s.masks)
        return (-run, -placements, mask)

    return min(free, key=left)


def shipped(table: ProfileTable, taken: int, shape: int, mask: int) -> Score | None:
    """The default policy as it ships: its own cost, computed by its own code."""
    wanted = tuple(int(index == shape) for index in range(len(table.shapes)))
    packing = _DEFAULT.pack(table, taken, wanted)
    if packing is None or packing.placed[0][1].mask != mask & table.slice_mask:
        return None
    return (_DEFAULT.gpu_cost(table, taken, packing),)


_DEFAULT: Final = Rule(CAP_LOSS, CAP_LOSS)


def best_fit(table: ProfileTable, taken: int, shape: int, mask: int) -> Score:
    """The GPU with the fewest free memory slices, the lowest start."""
    return (table.free_memory_slices(taken),)


def mfi(table: ProfileTable, taken: int, shape: int, mask: int) -> Score:
    """MFI (arXiv 2511.18906), reconstructed: blocked starts weighted by size, least added."""

    def blocked(state: int) -> int:
        free = table.free_memory_slices(state)
        return sum(
            s.memory_slices * sum(bool(other & state) for other in s.masks)
            for s in table.shapes
            if s.memory_slices <= free
        )

    return (blocked(taken | mask) - blocked(taken),)


def fgd(shares: Sequence[float]) -> ScoreOf:
    """FGD (ATC'23) on MIG: free slices that the expected mix cannot use, least added."""

    def stranded(table: ProfileTable, state: int) -> float:
        lost = sum(shares[s.index] for s in table.shapes if all(m & state for m in s.masks))
        return table.free_memory_slices(state) * lost

    def score(table: ProfileTable, taken: int, shape: int, mask: int) -> Score:
        return (round(stranded(table, taken | mask) - stranded(table, taken), 9),)

    return score


Maker = Callable[[ProfileTable, int, Sequence[float]], Placer]

RULES: Final[Mapping[str, Maker]] = {
    "random": lambda table, gpus, _: AtRandom(table, gpus),
    "hami": lambda table, gpus, _: Hami(table, gpus),
    "hami binpack": lambda table, gpus, _: Hami(table, gpus, gpu_binpack=True),
    "hami pr2855": lambda table, gpus, _: Hami(table, gpus, start=scored_start),
    "first-fit": lambda table, gpus, _: ByIndex(table, gpus),
    "best-fit": lambda table, gpus, _: ByMask(table, gpus, best_fit),
    "mfi": lambda table, gpus, _: ByMask(table, gpus, mfi),
    "fgd": lambda table, gpus, shares: ByMask(table, gpus, fgd(shares)),
    "ours": lambda table, gpus, _: ByMask(table, gpus, shipped, starts=True),
    "repack": lambda table, gpus, _: Repack(table, gpus),
}
PUBLISHED: Final = ("hami", "hami binpack", "hami pr2855", "first-fit", "best-fit", "mfi", "fgd")
