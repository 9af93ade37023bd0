"""Looks at a cluster as the worker's task does, in this process, so that they can be cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import connection

from hami_web.cluster.client import OfficialConnection
from hami_web.cluster.transport import Request, Transport
from hami_web.handover.actions import Writer
from hami_web.handover.advance import Look, advance
from hami_web.handover.models import NodeHandover
from hami_web.handover.probe_pods import Form
from hami_web.handover.testing import Driver
from hami_web.migration.facts import ClusterFacts
from hami_web.migration.gather import Gatherer


class Killed(BaseException):
    """Stands for kill -9: nothing of the code under test may catch it."""


@dataclass
class Knife:
    """Ends a look before its ``at``-th write, or just after it, in the cluster or the database."""

    at: int = -1
    points: int = field(default=0, init=False)

    def __call__(self) -> None:
        self.points += 1
        if self.points == self.at:
            raise Killed


class KilledTransport(Transport):
    """Before and after each write there is a point at which it can end."""

    knife: Knife

    def send(self, request: Request) -> bytes:
        if request.method == "GET" or "subjectaccessreviews" in request.path:
            return super().send(request)
        self.knife()
        try:
            return super().send(request)
        finally:
            self.knife()


def look_once(kubeconfig: Path, knife: Knife | None = None) -> int:
    """One run of the task; with a knife it may raise Killed."""
    knife = knife or Knife()

    @contextmanager
    def look() -> Iterator[Look]:
        transport = KilledTransport(OfficialConnection(kubeconfig), user_agent="test")
        transport.knife = knife

        def facts(node: str) -> ClusterFacts:
            return Gatherer(transport, "hami-system", lambda _part: None, node).gather()

        yield Look(facts, Driver(Writer(transport), Form("hami-system", "hami-scheduler")))

    def cut(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if not sql.startswith("SELECT"):
            knife()
        return execute(sql, *rest)

    NodeHandover.objects.filter(looked_at__isnull=False).update(looked_at=None)
    with connection.execute_wrapper(cut):
        return advance(look)


def look_interrupted(kubeconfig: Path, after: Callable[[], None]) -> int:
    """Looks that are killed at their first point, the next at its second, until one ends."""
    kills = 0
    while True:
        knife = Knife(kills + 1)
        try:
            look_once(kubeconfig, knife)
        except Killed:
            kills += 1
            after()
        else:
            return kills
