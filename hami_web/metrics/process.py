"""What this process is: its build, its role, its calls to the API server."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

from hami_web.cluster.pacing import Pace
from hami_web.metrics import hami_series as hami
from hami_web.metrics import table
from hami_web.metrics.series import Family, single
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


class ProcessCollector:
    """Build, leadership, events, API calls, dead agents."""

    def __init__(self, core: MeasuredProcess) -> None:
        self._core = core

    def collect(self) -> Iterator[Family]:
        """Of the extender's process."""
        core = self._core
        yield build()
        term = core.leadership.term()
        yield single(table.LEADER, int(term is not None))
        if term is not None:
            yield single(table.LEADER_TERM, term.number)
        yield single(table.READY, int(core.not_ready_because() is None))
        events = Family(table.EVENTS)
        for outcome, count in (
            ("written", core.events.written),
            ("failed", core.events.failed),
            ("dropped", core.events.dropped),
        ):
            events.add(count, outcome)
        yield events
        yield single(table.API_WAIT, core.pace.waited_s)
        yield Family(table.AGENT_DEAD, [((node,), 1) for node in core.agents.dead()])


def build() -> Family:
    """HAMi's labels; what only Go has is empty."""
    try:
        release = version("hami-web")
    except PackageNotFoundError:
        release = "unknown"
    compiler = f"{platform.python_implementation().lower()}{platform.python_version()}"
    system = f"{platform.system().lower()}/{platform.machine()}"
    return Family(hami.BUILD, [(("unknown", compiler, "", system, "unknown", release), 1)])
