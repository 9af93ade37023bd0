"""What this process is: its build, its role, its calls to the API server."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hami_web.cluster.pacing import Pace
from hami_web.scheduling.agents import AgentLeases
from hami_web.scheduling.events import EventRecorder
from hami_web.scheduling.leadership import Leadership


class MeasuredProcess(Protocol):
    """The running scheduling core, as far as the process is measured."""

    @property
    def leadership(self) -> Leadership: ...

    @property
    def events(self) -> EventRecorder: ...

    @property
    def pace(self) -> Pace: ...

    @property
    def agents(self) -> AgentLeases: ...

    def not_ready_because(self) -> str | None: ...


class ProcessCollector(Collector):
    """Build, leadership, events, API calls, dead agents."""

    def __init__(self, core: MeasuredProcess) -> None:
        self._core = core

    def collect(self) -> Iterator[Metric]:
        core = self._core
        yield _build()
        term = core.leadership.term()
        yield GaugeMetricFamily(
            "hami_leader", "1 while this replica leads.", value=int(term is not None)
        )
        if term is not None:
            yield GaugeMetricFamily(
                "hami_leader_term", "Number of the term that this replica leads.", value=term.number
            )
        yield GaugeMetricFamily(
            "hami_scheduler_ready",
            "1 while this replica decides.",
            value=int(core.not_ready_because() is None),
        )
        events = CounterMetricFamily(
            "hami_scheduler_events", "Events by what became of them.", labels=("outcome",)
        )
        for outcome, count in (
            ("written", core.events.written),
            ("failed", core.events.failed),
            ("dropped", core.events.dropped),
        ):
            events.add_metric([outcome], count)
        yield events
        yield CounterMetricFamily(
            "hami_scheduler_api_wait_seconds",
            "Time that calls to the API server waited for their turn.",
            value=core.pace.waited_s,
        )
        dead = GaugeMetricFamily(
            "hami_node_agent_dead", "1 for a node whose agent does not serve.", labels=("node",)
        )
        for node in core.agents.dead():
            dead.add_metric([node], 1)
        yield dead

    def describe(self) -> Iterable[Metric]:
        """Nothing at registration."""
        return ()


def _build() -> Metric:
    """HAMi's labels; what only Go has is empty."""
    labels = ("build_date", "compiler", "go_version", "platform", "revision", "version")
    family = GaugeMetricFamily(
        "hami_build_info",
        "hami build metadata exposed as labels with a constant value of 1.",
        labels=labels,
    )
    try:
        release = version("hami-web")
    except PackageNotFoundError:
        release = "unknown"
    compiler = f"{platform.python_implementation().lower()}{platform.python_version()}"
    system = f"{platform.system().lower()}/{platform.machine()}"
    family.add_metric(["unknown", compiler, "", system, "unknown", release], 1)
    return family
