"""How deciding and binding go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from hami_web.metrics import table
from hami_web.metrics.series import Family, Series, single
from hami_web.scheduling.bind import Binder
from hami_web.scheduling.bind_queue import BindQueue
from hami_web.scheduling.decider import Decider
from hami_web.scheduling.decision_log import DecisionLog
from hami_web.scheduling.measures import Durations
from hami_web.scheduling.realizations import Realizations
from hami_web.scheduling.waiting import WaitingPods, Waker


class Measured(Protocol):
    """The running scheduling core, as far as it is measured."""

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

    @property
    def realizations(self) -> Realizations: ...


class SchedulingCollector:
    """How deciding and binding go, and how long agents take to realize."""

    def __init__(self, core: Measured) -> None:
        self._core = core

    def collect(self) -> Iterator[Family]:
        """Durations, queues and counts."""
        core = self._core
        yield histogram(table.FILTER, core.decider.filter_durations)
        yield histogram(table.BIND, core.binder.durations)
        yield histogram(table.LOCK_WAIT, core.binder.lock_waits)
        yield histogram(table.REALIZATION, core.realizations.durations)
        yield single(table.UNREALIZED_AGE, core.realizations.oldest_s())
        depths = sorted(core.queue.depths().items())
        yield Family(table.BIND_QUEUE, [((node,), depth) for node, depth in depths])
        yield single(table.WAITING, len(core.waiting))
        rejections = sorted(core.decider.rejections.items())
        yield Family(table.REJECTIONS, [((str(reason),), n) for reason, n in rejections])
        yield single(table.UNSETTLED, len(core.binder.unsettled))
        yield single(table.WOKEN, core.waker.woken)
        yield single(table.DROPPED, core.log.dropped)


def histogram(series: Series, durations: Durations) -> Family:
    """A histogram without labels."""
    return Family(series, durations=[((), durations.snapshot())])
