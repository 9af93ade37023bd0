"""How deciding, binding and watching go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from hami_web.scheduling.bind import Binder
from hami_web.scheduling.bind_queue import BindQueue
from hami_web.scheduling.decider import Decider
from hami_web.scheduling.decision_log import DecisionLog
from hami_web.scheduling.measures import BUCKETS_S, Durations
from hami_web.scheduling.waiting import WaitingPods, Waker


class Watch(Protocol):
    """A reflector, as far as it is measured."""

    name: str
    relists: int
    failures: int

    def age_s(self) -> float | None: ...

    def list_age_s(self) -> float | None: ...


class Measured(Protocol):
    """The running scheduling core, as far as it is measured."""

    @property
    def reflectors(self) -> Sequence[Watch]: ...

    @property
    def queue(self) -> BindQueue: ...

    @property
    def binder(self) -> Binder: ...

    @property
    def waiting(self) -> WaitingPods: ...

    @property
    def waker(self) -> Waker: ...

    @property
    def decider(self) -> Decider: ...

    @property
    def log(self) -> DecisionLog: ...


class SchedulingCollector(Collector):
    """How deciding and binding go."""

    def __init__(self, core: Measured) -> None:
        self._core = core

    def collect(self) -> Iterator[Metric]:
        core = self._core
        yield _histogram(
            "hami_scheduler_filter_duration_seconds",
            "Time to decide one filter call.",
            core.decider.filter_durations,
        )
        yield _histogram(
            "hami_scheduler_bind_duration_seconds",
            "Time of one bind call, waiting included.",
            core.binder.durations,
        )
        yield _histogram(
            "hami_scheduler_node_lock_wait_seconds",
            "Time until the node lock was taken or given up.",
            core.binder.lock_waits,
        )
        yield _bind_queue(core.queue)
        yield _gauge("hami_scheduler_waiting_pods", "Refused Pods that wait.", len(core.waiting))
        yield _rejections(core.decider)
        yield _gauge(
            "hami_scheduler_unsettled_binds",
            "Binds of which it is not known yet whether they happened.",
            len(core.binder.unsettled),
        )
        woken = CounterMetricFamily(
            "hami_scheduler_woken_pods", "Waiting Pods woken when they fit."
        )
        woken.add_metric([], core.waker.woken)
        yield woken
        yield CounterMetricFamily(
            "hami_scheduler_decisions_dropped",
            "Decisions that left the extender's memory before anyone read them.",
            value=core.log.dropped,
        )
        yield from _watches(core.reflectors)

    def describe(self) -> Iterable[Metric]:
        """Nothing at registration."""
        return ()


def _rejections(decider: Decider) -> Metric:
    family = CounterMetricFamily(
        "hami_scheduler_filter_rejections",
        "Nodes that were refused for a Pod, by reason.",
        labels=("reason",),
    )
    for reason, count in sorted(decider.rejections.items()):
        family.add_metric([reason], count)
    return family


def _bind_queue(queue: BindQueue) -> Metric:
    family = GaugeMetricFamily(
        "hami_scheduler_bind_queue_depth", "Binds that wait or run for a node.", labels=("node",)
    )
    for node, depth in sorted(queue.depths().items()):
        family.add_metric([node], depth)
    return family


def _watches(watches: Sequence[Watch]) -> Iterator[Metric]:
    heard = GaugeMetricFamily(
        "hami_informer_silence_seconds",
        "Seconds since the API server was last heard about a resource.",
        labels=("resource",),
    )
    listed = GaugeMetricFamily(
        "hami_informer_list_age_seconds",
        "Seconds since the last complete list of a resource.",
        labels=("resource",),
    )
    relists = CounterMetricFamily(
        "hami_informer_relists", "Complete lists of a resource.", labels=("resource",)
    )
    failures = CounterMetricFamily(
        "hami_informer_failures", "Lists and watches that failed.", labels=("resource",)
    )
    for watch in watches:
        for family, age in ((heard, watch.age_s()), (listed, watch.list_age_s())):
            if age is not None:
                family.add_metric([watch.name], age)
        relists.add_metric([watch.name], watch.relists)
        failures.add_metric([watch.name], watch.failures)
    yield from (heard, listed, relists, failures)


def _gauge(name: str, documentation: str, value: float) -> Metric:
    return GaugeMetricFamily(name, documentation, value=value)


def _histogram(name: str, documentation: str, durations: Durations) -> Metric:
    found = durations.snapshot()
    total = 0
    buckets: list[tuple[str, float]] = []
    for bound, count in zip((*map(str, BUCKETS_S), "+Inf"), found.counts, strict=True):
        total += count
        buckets.append((bound, total))
    return HistogramMetricFamily(name, documentation, buckets=buckets, sum_value=found.total_s)
