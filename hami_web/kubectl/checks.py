"""A migration check over the API: start it, wait, and read what it found."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from hami_web.kubectl.rest import RestSource
from hami_web.kubectl.source import CommandFailed
from hami_web.kubectl.wording import tr

POLL_S: Final = 0.5
_GOING: Final = ("requested", "running")


class Run(Struct, kw_only=True):
    """How far a check is."""

    id: int
    state: str
    error: str = ""
    part: str = ""
    parts_done: int = 0
    parts: int | None = None


class Readiness(Struct, kw_only=True):
    """What the check says of a node: ready, not_ready or unknown."""

    node: str
    readiness: str


class Finding(Struct, kw_only=True):
    """Something in the way, and what mends it."""

    node: str
    severity: str
    code: str
    subject: str = ""
    evidence: str = ""
    consequence: str = ""
    mend: str = ""


class Report(Struct, kw_only=True):
    """A finished check."""

    run: Run
    nodes: list[Readiness]
    findings: list[Finding]

    @property
    def is_ready(self) -> bool:
        """Every node can be taken over."""
        return all(node.readiness == "ready" for node in self.nodes)


class _Runs(Struct):
    results: list[Run]


def check(source: RestSource, tell: Callable[[Run], None], *, timeout_s: float) -> Report:
    """Start a check, or join the one that goes on, and wait for its end."""
    query = f"migration-runs?state__in={','.join(_GOING)}&limit=1"
    going = msgspec.convert(source.ask(query), _Runs).results
    run = going[0] if going else _run(source.ask("migration-runs/start", {}))
    deadline = time.monotonic() + timeout_s
    while run.state in _GOING:
        tell(run)
        if time.monotonic() > deadline:
            text = tr("check {id} is not over after {seconds:.0f} s; it goes on")
            raise CommandFailed(text.format(id=run.id, seconds=timeout_s))
        time.sleep(POLL_S)
        run = _run(source.ask(f"migration-runs/{run.id}"))
    if run.state != "finished":
        text = tr("check {id} ended as {state}: {error}")
        raise CommandFailed(text.format(id=run.id, state=run.state, error=run.error))
    return Report(
        run=run,
        nodes=source.all_rows(f"migration-runs/{run.id}/nodes", {}, Readiness),
        findings=source.all_rows(f"migration-runs/{run.id}/findings", {}, Finding),
    )


def _run(document: object) -> Run:
    return msgspec.convert(document, Run)
