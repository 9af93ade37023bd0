"""Reservations that are wrong, by the Pod that carries them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hami_web.metrics import table
from hami_web.metrics.series import Family
from hami_web.scheduling.problems import ReservationProblem


class ProblemCollector:
    """One series for a problem, gone when it is mended or its Pod is."""

    def __init__(self, present: Callable[[], Iterable[ReservationProblem]]) -> None:
        self._present = present

    def collect(self) -> Iterator[Family]:
        """What is wrong now. Two problems of one Pod that differ in the text alone are one."""
        family = Family(table.PROBLEM)
        rows = {
            (item.gpu_uuid, item.pod.namespace, item.node, item.pod.name, str(item.code))
            for item in self._present()
        }
        for row in sorted(rows):
            family.add(1, *row)
        yield family
