"""A check from request to end: a row that any worker takes, and takes again after a kill."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db.models import Q

from hami_web.cluster.errors import ClusterError
from hami_web.core.errors import InvalidField
from hami_web.inventory.models import NAME_MAX
from hami_web.inventory.writing import writing
from hami_web.migration.examine import Examination, examine
from hami_web.migration.facts import ClusterFacts, Part
from hami_web.migration.gather import Cancelled
from hami_web.migration.models import ENDED, Finding, MigrationRun, NodeReadiness, RunState

logger = logging.getLogger(__name__)

SILENT_AFTER: Final = timedelta(minutes=2)
"""A worker tells of each page that it reads; one that is silent for longer has died."""
SUBJECT_MAX: Final = 1000
NODE_NAME: Final = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"

Step = Callable[[Part], None]
Gather = Callable[[Step, str], ClusterFacts]
"""Reads the cluster, or what concerns the named node."""


class NotRunning(Exception):
    """The check is over, so it cannot be cancelled."""


class CheckGoesOn(Exception):
    """A check that was asked for is not over; ``run`` is that one."""

    def __init__(self, run: MigrationRun) -> None:
        self.run = run
        of = f" of node {run.node}" if run.node else ""
        super().__init__(f"check {run.pk}{of} is {run.state}")


def request_check(who: str, now: datetime, node: str = "", *, request_id: str = "") -> MigrationRun:
    """Ask for a check of all nodes, or of one.

    Raises CheckGoesOn where one is not over: it sees the same cluster; InvalidField for what is
    no node's name.
    """
    if node and not (len(node) <= NAME_MAX and re.fullmatch(NODE_NAME, node)):
        allowed = "a node's name: lower case letters, digits, - and ., at most 253 characters"
        raise InvalidField("node", node, allowed)
    with writing():
        open_ = MigrationRun.objects.exclude(state__in=ENDED).first()
        if open_ is not None:
            raise CheckGoesOn(open_)
        who = who[:NAME_MAX]
        return MigrationRun.objects.create(
            requested_by=who, requested_at=now, node=node, request_id=request_id
        )


def cancel_check(pk: int, who: str, now: datetime) -> MigrationRun:
    """Call a check off. Raises NotRunning when it is over; DoesNotExist."""
    with writing():
        run = MigrationRun.objects.get(pk=pk)
        if run.state in ENDED:
            raise NotRunning(run.state)
        run.state, run.finished_at, run.cancelled_by = RunState.CANCELLED, now, who[:NAME_MAX]
        run.save()
        return run


def claim_check(now: datetime) -> MigrationRun | None:
    """The oldest check that nobody works at, now ours; None without one."""
    silent = Q(state=RunState.RUNNING, seen_at__lt=now - SILENT_AFTER)
    waiting = MigrationRun.objects.filter(Q(state=RunState.REQUESTED) | silent)
    if not waiting.exists():
        return None  # the usual case, every two seconds: keep out of the feed's way
    with writing():
        run = waiting.order_by("requested_at", "id").first()
        if run is None:
            return None
        run.state, run.started_at, run.seen_at = RunState.RUNNING, now, now
        run.part, run.parts_done, run.parts = "", 0, len(Part)
        run.save()
        return run


def perform_check(run: MigrationRun, gather: Gather) -> None:
    """Look, examine, and store all of it at once; the row says how it ended."""
    claim = Q(pk=run.pk, state=RunState.RUNNING, started_at=run.started_at)

    def step(part: Part) -> None:
        facts = {"part": part.value, "seen_at": datetime.now(UTC)}
        done = list(Part).index(part)
        if not MigrationRun.objects.filter(claim).update(parts_done=done, **facts):
            raise Cancelled

    try:
        found = examine(gather(step, run.node))
    except Cancelled:
        logger.info("check %d was called off, or taken over", run.pk)
    except ClusterError as error:
        logger.warning("check %d: %s", run.pk, error)
        _end(claim, RunState.FAILED, error=str(error)[:2000])
    except Exception:
        logger.exception("check %d", run.pk)
        _end(claim, RunState.FAILED, error="a fault of ours; the worker's log has it")
    else:
        _store(claim, run, found)


def _store(claim: Q, run: MigrationRun, found: Examination) -> None:
    now = datetime.now(UTC)
    with writing():
        if not _end(claim, RunState.FINISHED, parts_done=len(Part), part=""):
            return
        logger.info("check %d: %d nodes were looked at", run.pk, len(found.nodes))
        NodeReadiness.objects.bulk_create(
            NodeReadiness(run=run, node=name, readiness=readiness, checked_at=now)
            for name, readiness in found.nodes.items()
        )
        Finding.objects.bulk_create(
            Finding(
                run=run,
                node=item.node,
                severity=item.severity,
                code=item.code.value,
                subject=item.subject[:SUBJECT_MAX],
                evidence=item.evidence,
            )
            for item in found.findings
        )


def _end(claim: Q, state: RunState, **facts: object) -> bool:
    """Only who still holds the claim may end the check."""
    ended = {"state": state, "finished_at": datetime.now(UTC), **facts}
    return bool(MigrationRun.objects.filter(claim).update(**ended))
