"""The agent's own metrics; every family has one meaning and no label that grows without end."""

from __future__ import annotations

from collections import Counter as CodeCounts
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hami_web.core.blocked import BlockedInterval
from node_agent.inventory import GpuProblem
from node_agent.nvml.binding import ERRORS


class AgentMetrics:
    """All families of one agent, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._instances: _Instances | None = None
        self._count_outcomes()
        self._time_work()
        self._show_state()

    def _count_outcomes(self) -> None:
        self.allocations = self._counter(
            "hami_agent_allocations",
            "Containers served by Allocate, by outcome (success or the kind of refusal)",
            "outcome",
        )
        self.registrations = self._counter(
            "hami_agent_kubelet_registrations",
            "Registrations with the kubelet, by outcome",
            "outcome",
        )
        self.adoptions = self._counter(
            "hami_agent_adoption_verdicts",
            "Reservations looked at when the agent started, by verdict",
            "verdict",
        )
        self.reclaims = self._counter(
            "hami_agent_reclaims",
            "Instances that were to be destroyed, by outcome",
            "outcome",
        )
        self.skipped = self._counter(
            "hami_agent_skipped_reconciliations",
            "Passes that destroyed nothing because something was in doubt, by reason",
            "reason",
        )
        self.publications = self._counter(
            "hami_agent_publications",
            "Writes of the node's annotations, by outcome",
            "outcome",
        )
        self.renewals = self._counter(
            "hami_agent_lease_writes",
            "Writes of the agent's Lease, by outcome (held, released, failed)",
            "outcome",
        )
        self.events = self._counter(
            "hami_agent_pod_events",
            "Events for Pods, by outcome (written, failed, dropped)",
            "outcome",
        )
        self.xids = self._counter(
            "hami_agent_gpu_errors", "Errors that GPUs reported, by class of their Xid", "class"
        )

    def _time_work(self) -> None:
        self.allocate_seconds = Histogram(
            "hami_agent_allocate_seconds",
            "Time one container's Allocate took",
            registry=self.registry,
            buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
        )
        self.instance_seconds = Histogram(
            "hami_agent_instance_seconds",
            "Time that NVML took to make or to destroy one GPU instance, by operation",
            ["operation"],
            registry=self.registry,
            buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
        )

    def _show_state(self) -> None:
        self.registry.register(_NvmlErrors())
        self.gpus = Gauge(
            "hami_agent_gpus",
            "GPUs of the node, by whether they are offered",
            ["offered"],
            registry=self.registry,
        )
        self.problems = Gauge(
            "hami_agent_problems",
            "Causes for which a GPU or the whole node takes no work, by code",
            ["code"],
            registry=self.registry,
        )
        self.blocked_slices = Gauge(
            "hami_agent_blocked_memory_slices",
            "Memory slices that no reservation explains and that take no instance",
            ["gpu"],
            registry=self.registry,
        )

        self.other_owner = Gauge(
            "hami_agent_other_owner",
            "1 while something else may change the MIG layout of the node's GPUs",
            registry=self.registry,
        )

    def show_gpus(self, offered: int, problems: Iterable[GpuProblem]) -> None:
        """How many GPUs are offered, and why the others are not; earlier causes are forgotten."""
        codes = CodeCounts(problem.code for problem in problems)
        self.gpus.labels("true").set(offered)
        self.gpus.labels("false").set(codes.total())
        self.problems.clear()
        for code, number in codes.items():
            self.problems.labels(code).set(number)

    def show_blocked(self, intervals: Iterable[BlockedInterval]) -> None:
        """The memory slices that are blocked now, by GPU."""
        self.blocked_slices.clear()
        for interval in intervals:
            self.blocked_slices.labels(interval.gpu_uuid).inc(interval.placement.size)

    def _counter(self, name: str, text: str, label: str) -> Counter:
        return Counter(name, text, [label], registry=self.registry)

    def watch_instances(
        self, count: Callable[[], Iterable[tuple[str, int]]], oldest: Callable[[], float]
    ) -> None:
        """Report instances by state, and for how long the oldest is being reclaimed.

        Both are asked when the metrics are read.
        """
        self.forget_instances()
        self._instances = _Instances(count, oldest)
        self.registry.register(self._instances)

    def forget_instances(self) -> None:
        """Report no instances any more, while nobody can count them."""
        if self._instances is not None:
            self.registry.unregister(self._instances)
            self._instances = None

    def text(self) -> bytes:
        """The exposition text."""
        return generate_latest(self.registry)


class _Instances(Collector):
    def __init__(
        self, count: Callable[[], Iterable[tuple[str, int]]], oldest: Callable[[], float]
    ) -> None:
        self._count = count
        self._oldest = oldest

    def collect(self) -> Iterable[Metric]:
        family = GaugeMetricFamily(
            "hami_agent_instances",
            "GPU instances by state: intent, realized, reclaiming, foreign, missing",
            labels=["state"],
        )
        for state, number in self._count():
            family.add_metric([state], number)
        yield family
        yield GaugeMetricFamily(
            "hami_agent_oldest_reclaim_seconds",
            "Age of the oldest instance whose destroy is refused, 0 for none",
            value=self._oldest(),
        )


class _NvmlErrors(Collector):
    def collect(self) -> Iterable[Metric]:
        family = CounterMetricFamily(
            "hami_agent_nvml_errors", "Failed NVML calls, by call and code", labels=["call", "code"]
        )
        for (function, code), number in ERRORS.items():
            family.add_metric([function, str(code)], number)
        yield family
