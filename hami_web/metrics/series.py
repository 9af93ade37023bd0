"""What a metric is called, which labels it has, and what it means: one description for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from hami_web.scheduling.measures import DurationCounts


class Kind(StrEnum):
    """Prometheus' kinds of metrics, as the exposition names them."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Owner(StrEnum):
    """The role whose process answers for a series, and no other."""

    EXTENDER = "extender"
    WORKER = "worker"
    WEB = "web"


@dataclass(frozen=True, slots=True)
class Series:
    """One family. ``name`` is as exposed (a counter's ends in ``_total``); labels are sorted.

    ``text`` is the HELP line: what is measured, its unit where the name has none, its scale where
    it is a ratio.
    """

    name: str
    kind: Kind
    text: str
    labels: tuple[str, ...] = ()
    hami: bool = False
    """One of HAMi's own, whose name, labels and scale are not ours to choose."""

    def __post_init__(self) -> None:
        if list(self.labels) != sorted(set(self.labels)):
            raise ValueError(f"{self.name}: labels {self.labels} are not sorted")
        if not self.hami and (self.kind is Kind.COUNTER) != self.name.endswith("_total"):
            raise ValueError(f"{self.name}: counters, and only counters, end in _total")


@dataclass(slots=True)
class Family:
    """The values of one series at one moment, by label values in the order of its labels."""

    series: Series
    rows: list[tuple[tuple[str, ...], float]] = field(default_factory=list)
    durations: list[tuple[tuple[str, ...], DurationCounts]] = field(default_factory=list)
    """Of a histogram, in place of ``rows``."""

    def add(self, value: float, *labels: str) -> None:
        """Add one value."""
        self.rows.append((labels, value))


class Collector(Protocol):
    """Whoever knows some families."""

    def collect(self) -> Iterable[Family]:
        """The values of this moment."""


def single(series: Series, value: float) -> Family:
    """A family of one value without labels."""
    return Family(series, [((), value)])


def collect_all(collectors: Iterable[Collector]) -> Iterator[Family]:
    """The families of several collectors, one after the other."""
    for collector in collectors:
        yield from collector.collect()
