"""Tells of reservations that are wrong: an event on the Pod and a line in the log, once each."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final, Protocol

from hami_web.scheduling.events import EventReason, EventRecorder, Regarding
from hami_web.scheduling.problems import (
    ProblemCode,
    ReservationProblem,
    doubts_of,
    overlaps_of,
    troubled,
)
from hami_web.scheduling.state import ClusterState

logger = logging.getLogger(__name__)

TOLD_AT_ONCE: Final = 20
"""New problems told in one turn: who writes nonsense on many Pods must not crowd out others."""
REMIND_S: Final = 1800.0
"""Shorter than the hour for which the API server keeps events."""

_REASONS: Final = {
    ProblemCode.MALFORMED: EventReason.RESERVATION_MALFORMED,
    ProblemCode.MISPLACED: EventReason.RESERVATION_MALFORMED,
    ProblemCode.UNEXPLAINED: EventReason.RESERVATION_MALFORMED,
    ProblemCode.OVERLAPPING: EventReason.RESERVATION_CONFLICT,
    ProblemCode.ALTERED: EventReason.RESERVATION_ALTERED,
    ProblemCode.UNTRUSTED: EventReason.RESERVATION_UNTRUSTED,
}


class ProblemSource(Protocol):
    """Who knows problems; ``version`` changes when they do."""

    @property
    def version(self) -> int: ...

    def problems(self) -> list[ReservationProblem]: ...


class StateProblems:
    """What is wrong with reservations that count."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    @property
    def version(self) -> int:
        """Of the state."""
        return self._state.version

    def problems(self) -> list[ReservationProblem]:
        """Doubts and overlaps, with which Pods."""
        found: list[ReservationProblem] = []
        for node in troubled(self._state.snapshot()):
            found.extend(doubts_of(node.gpus, self._state.pods_on(node.name)))
            found.extend(overlaps_of(node))
        return found


class ProblemTeller:
    """Compares what is wrong now with what was told. Used by one thread; read by any."""

    def __init__(
        self,
        sources: tuple[ProblemSource, ...],
        events: EventRecorder,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sources = sources
        self._events = events
        self._clock = clock
        self._versions: tuple[int, ...] = ()
        self._present: dict[tuple[str, str, str], ReservationProblem] = {}
        self._told: dict[tuple[str, str, str], tuple[ReservationProblem, float]] = {}

    def present(self) -> list[ReservationProblem]:
        """What was wrong at the last look."""
        return list(self._present.values())

    def look(self) -> None:
        """See what is wrong. Costs nothing while nothing changed."""
        versions = tuple(source.version for source in self._sources)
        if versions != self._versions:
            found = [problem for source in self._sources for problem in source.problems()]
            self._present = {problem.key: problem for problem in found}
            self._versions = versions

    def tell(self) -> None:
        """Tell what is new, what is mended, and, rarely, what is still wrong."""
        for key in [key for key in self._told if key not in self._present]:
            problem, _ = self._told.pop(key)
            logger.info("Pod %s: mended or gone: %s", problem.pod.full_name, problem.code)
        now = self._clock()
        left = TOLD_AT_ONCE
        for key, problem in self._present.items():
            before = self._told.get(key)
            if before is not None and before[0] == problem and now - before[1] < REMIND_S:
                continue
            if not left:
                return
            left -= 1
            if before is None or before[0] != problem:
                logger.warning("node %s: %s: %s", problem.node, problem.code, problem.text)
            self._told[key] = (problem, now)
            pod = problem.pod
            about = Regarding(pod.namespace, pod.name, pod.uid)
            self._events.record(about, _REASONS[problem.code], problem.text)
