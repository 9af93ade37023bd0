"""Arrivals and departures on one cluster, and what was accepted."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from hami_web.core.oracle import CapacityOracle
from hami_web.core.tables import ProfileTable
from tests.benchmarks.placement.mixes import Arrival
from tests.benchmarks.placement.rules import Choice, Placer


@dataclass(slots=True)
class Outcome:
    """Counts per shape after the warm-up. ``avoidable`` fit the facets when they were refused."""

    sizes: tuple[int, ...]
    offered: list[int]
    accepted: list[int]
    avoidable: int = 0
    waits: list[float] = field(default_factory=list)

    @property
    def slices(self) -> float:
        """Accepted share of the offered memory slices."""
        return _weighted(self.accepted, self.sizes) / _weighted(self.offered, self.sizes)

    @property
    def requests(self) -> float:
        """Accepted share of the requests."""
        return sum(self.accepted) / sum(self.offered)

    @property
    def whole(self) -> float:
        """Accepted share of the requests for the largest profile, 1 when there were none."""
        return self.accepted[-1] / self.offered[-1] if self.offered[-1] else 1.0

    @property
    def mean_wait(self) -> float:
        """Mean time from arrival to start, in mean durations."""
        return sum(self.waits) / len(self.waits)


def run_blocking(
    placer: Placer,
    table: ProfileTable,
    arrivals: Sequence[Arrival],
    *,
    warm_up: float,
    oracle: CapacityOracle | None = None,
    gpus: int = 0,
) -> Outcome:
    """Refused requests are lost. With an oracle, count the refusals that moving would avoid."""
    outcome = _empty(table)
    running: list[tuple[float, int, Choice, int]] = []
    present = [0] * len(table.shapes)
    for number, arrival in enumerate(arrivals):
        while running and running[0][0] <= arrival.time:
            _, _, choice, shape = heapq.heappop(running)
            placer.release(choice, shape)
            present[shape] -= 1
        counted = arrival.time >= warm_up
        chosen = placer.place(arrival.shape)
        if counted:
            outcome.offered[arrival.shape] += 1
        if chosen is None:
            if counted and oracle is not None:
                present[arrival.shape] += 1
                outcome.avoidable += oracle.within(present, gpus)
                present[arrival.shape] -= 1
            continue
        present[arrival.shape] += 1
        outcome.accepted[arrival.shape] += counted
        ends = arrival.time + arrival.duration
        heapq.heappush(running, (ends, number, chosen, arrival.shape))
    return outcome


@dataclass(slots=True)
class _Queue:
    """Requests that wait, oldest first per shape, and those that run."""

    placer: Placer
    outcome: Outcome
    warm_up: float
    waiting: list[deque[tuple[float, int, float]]]
    running: list[tuple[float, int, Choice, int]] = field(default_factory=list)
    started: int = 0

    def arrive(self, arrival: Arrival, order: int) -> None:
        if arrival.time >= self.warm_up:
            self.outcome.offered[arrival.shape] += 1
        ahead = self.waiting[arrival.shape]
        choice = None if ahead else self.placer.place(arrival.shape)
        if choice is None:
            ahead.append((arrival.time, order, arrival.duration))
        else:
            self.start(arrival.time, arrival.time, arrival.shape, arrival.duration, choice)

    def depart_until(self, moment: float) -> None:
        while self.running and self.running[0][0] <= moment:
            now, _, choice, shape = heapq.heappop(self.running)
            self.placer.release(choice, shape)
            self.retry(now)

    def retry(self, now: float) -> None:
        refused = set[int]()
        while True:
            # Equal shapes are served in order, so one refusal is a refusal of all behind it.
            heads = [(q[0], s) for s, q in enumerate(self.waiting) if q and s not in refused]
            if not heads:
                return
            (came, _, duration), shape = min(heads)
            choice = self.placer.place(shape)
            if choice is None:
                refused.add(shape)
                continue
            self.waiting[shape].popleft()
            self.start(now, came, shape, duration, choice)

    def start(self, now: float, came: float, shape: int, duration: float, choice: Choice) -> None:
        self.started += 1
        heapq.heappush(self.running, (now + duration, self.started, choice, shape))
        if came >= self.warm_up:
            self.outcome.waits.append(now - came)
            self.outcome.accepted[shape] += 1


def run_queueing(
    placer: Placer, table: ProfileTable, arrivals: Sequence[Arrival], *, warm_up: float
) -> Outcome:
    """Refused requests wait; at every departure all are tried again, oldest first."""
    queue = _Queue(placer, _empty(table), warm_up, [deque() for _ in table.shapes])
    for order, arrival in enumerate(arrivals):
        queue.depart_until(arrival.time)
        queue.arrive(arrival, order)
    queue.depart_until(float("inf"))
    return queue.outcome


def _empty(table: ProfileTable) -> Outcome:
    shapes = len(table.shapes)
    sizes = tuple(shape.memory_slices for shape in table.shapes)
    return Outcome(sizes, [0] * shapes, [0] * shapes)


def _weighted(counts: Sequence[int], sizes: Sequence[int]) -> int:
    return sum(count * size for count, size in zip(counts, sizes, strict=True))
