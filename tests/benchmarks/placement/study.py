"""Runs of one model: every rule over the same streams, averaged over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean

from hami_web.core.oracle import CapacityOracle
from hami_web.core.tables import ProfileTable
from tests.benchmarks.placement.clairvoyant import most_slices
from tests.benchmarks.placement.mixes import (
    ALLOWLIST,
    Arrival,
    Duration,
    exponential,
    full_rate,
    shares_of,
    stream,
)
from tests.benchmarks.placement.rules import RULES
from tests.benchmarks.placement.simulation import Outcome, run_blocking, run_queueing
from tests.boards import ALLOWED_A100, board

WARM_UP = 8.0
"""Mean durations before counting begins."""


@dataclass(frozen=True, slots=True)
class Average:
    """Means over seeds; ``avoidable`` is a share of the offered requests."""

    requests: float
    slices: float
    whole: float
    avoidable: float


@dataclass(slots=True)
class Study:
    """One model and cluster size; results are kept by (rule, mix, load)."""

    model: str
    gpus: int
    seeds: int
    requests: int
    duration: Duration = exponential
    _oracles: dict[bool, CapacityOracle] = field(default_factory=dict)
    _known: dict[tuple[str, str, float], Average] = field(default_factory=dict)

    def run(self, rule: str, mix: str, load: float) -> Average:
        """One rule on one mix and load."""
        key = (rule, mix, load)
        if key not in self._known:
            outcomes = [self._once(rule, mix, load, seed) for seed in range(self.seeds)]
            offered = [sum(outcome.offered) for outcome in outcomes]
            self._known[key] = Average(
                mean(outcome.requests for outcome in outcomes),
                mean(outcome.slices for outcome in outcomes),
                mean(outcome.whole for outcome in outcomes),
                mean(o.avoidable / n for o, n in zip(outcomes, offered, strict=True)),
            )
        return self._known[key]

    def mean_wait(self, rule: str, mix: str, load: float) -> float:
        """Mean wait with queueing, in mean durations."""
        table = self._oracle(mix).table
        return mean(
            run_queueing(
                RULES[rule](table, self.gpus, shares_of(mix, table)),
                table,
                self._stream(mix, load, seed),
                warm_up=WARM_UP,
            ).mean_wait
            for seed in range(self.seeds)
        )

    def of_clairvoyant(self, mix: str, load: float) -> float:
        """Our accepted slices over a bound for anyone who knows the future, 3,000 requests."""
        oracle = self._oracle(mix)
        table, shares = oracle.table, shares_of(mix, oracle.table)
        rate = load * full_rate(shares, oracle, self.gpus)
        found = []
        for seed in range(self.seeds):
            arrivals = stream(shares, rate, 3_000, f"{mix} {load} clairvoyant {seed}")
            offered = sum(table.shapes[arrival.shape].memory_slices for arrival in arrivals)
            accepted = {
                rule: run_blocking(
                    RULES[rule](table, self.gpus, shares), table, arrivals, warm_up=0
                ).slices
                for rule in ("ours", "repack")
            }
            reached = accepted["repack"] * offered
            most = most_slices(arrivals, oracle, self.gpus, reached=reached, steps=120)
            found.append(accepted["ours"] * offered / most)
        return mean(found)

    def load_at(self, rule: str, mix: str, accepted: float, loads: Sequence[float]) -> float:
        """The load at which so many slices are still accepted, between the loads that were run."""
        before = (0.0, 1.0)
        for load in loads:
            slices = self.run(rule, mix, load).slices
            if slices < accepted:
                low, high = before
                return low + (load - low) * (high - accepted) / (high - slices)
            before = (load, slices)
        return before[0]

    def _once(self, rule: str, mix: str, load: float, seed: int) -> Outcome:
        oracle = self._oracle(mix)
        return run_blocking(
            RULES[rule](oracle.table, self.gpus, shares_of(mix, oracle.table)),
            oracle.table,
            self._stream(mix, load, seed),
            warm_up=WARM_UP,
            oracle=oracle,
            gpus=self.gpus,
        )

    def _stream(self, mix: str, load: float, seed: int) -> Sequence[Arrival]:
        oracle = self._oracle(mix)
        shares = shares_of(mix, oracle.table)
        rate = load * full_rate(shares, oracle, self.gpus)
        count = self.requests + int(WARM_UP * rate)
        return stream(shares, rate, count, f"{mix} {load} {seed}", self.duration)

    def _oracle(self, mix: str) -> CapacityOracle:
        """The capacity of the model, with HAMi's default allowlist for the mixes made for it."""
        allowed = mix in ALLOWLIST
        if allowed not in self._oracles:
            names = ALLOWED_A100 if allowed else None
            self._oracles[allowed] = CapacityOracle(ProfileTable(board(self.model, names=names)))
        return self._oracles[allowed]


def gap_closed(averages: Mapping[str, Average]) -> float:
    """Share of the way from HAMi's accepted slices to free repacking."""
    theirs, ours = averages["hami"].slices, averages["ours"].slices
    return (ours - theirs) / (averages["repack"].slices - theirs)
