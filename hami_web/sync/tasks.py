"""Celery's tasks, each of which calls one service; all may run twice at once and be killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

from celery import shared_task
from django.conf import settings
from django.db import DatabaseError

from hami_web.access.upkeep import prune_access
from hami_web.cluster.client import OfficialConnection
from hami_web.cluster.errors import ClusterError
from hami_web.cluster.transport import Transport
from hami_web.core.log_lines import about, current
from hami_web.handover.actions import Writer
from hami_web.handover.advance import Look, advance
from hami_web.handover.probe_pods import Form
from hami_web.handover.regressions import refresh_regressions
from hami_web.handover.testing import Driver
from hami_web.history import alerts, pruning, samples, vitals
from hami_web.migration.facts import ClusterFacts
from hami_web.migration.gather import Gatherer
from hami_web.migration.runs import Step, claim_check, perform_check
from hami_web.sync import progress
from hami_web.sync import reconcile as reconciling
from hami_web.sync.feed import USER_AGENT
from hami_web.sync.signing import signing_keys

EXPECTED: Final = (DatabaseError, ClusterError)
"""Away for now: Celery tells them in a line, and the next turn does all of it."""


@shared_task(name="hami.pulse", throws=EXPECTED)
def pulse() -> None:
    """Tell that the queue is consumed, and look whether the other parts work."""
    now = datetime.now(UTC)
    vitals.note_pulse(now)
    progress.note()
    vitals.refresh_vitals(now, compare_every_s=settings.RECONCILE_SECONDS)


@shared_task(name="hami.reconcile", throws=EXPECTED)
def reconcile() -> int:
    """Correct the mirror from a complete list; returns how many corrections it took."""
    listed = reconciling.list_cluster(settings.KUBECONFIG, settings.NAMESPACE, signing_keys())
    run = reconciling.reconcile(listed)
    alerts.refresh_alerts(datetime.now(UTC))
    progress.note()
    return run.corrections


@shared_task(name="hami.check", throws=EXPECTED)
def check() -> int:
    """Perform the readiness checks that somebody asked for; returns how many there were."""
    performed = 0
    while (run := claim_check(datetime.now(UTC))) is not None:
        with about(request_id=run.request_id or current("request_id")):
            perform_check(run, _look)
        performed += 1
    progress.note()
    return performed


@shared_task(name="hami.handover")
def handover() -> int:
    """Bring open take-overs of nodes on; returns how many were looked at."""
    looked = advance(_handover_look)
    refresh_regressions(datetime.now(UTC))
    progress.note()
    return looked


@contextmanager
def _handover_look() -> Iterator[Look]:
    with _transport() as transport:

        def facts(node: str) -> ClusterFacts:
            return Gatherer(transport, settings.NAMESPACE, lambda _part: None, node).gather()

        form = Form(settings.NAMESPACE, settings.SCHEDULER_NAME, settings.LIFECYCLE_IMAGE)
        yield Look(facts, Driver(Writer(transport), form))


def _look(step: Step, node: str) -> ClusterFacts:
    with _transport() as transport:
        extender = settings.EXTENDER_URL
        return Gatherer(transport, settings.NAMESPACE, step, node, extender).gather()


@contextmanager
def _transport() -> Iterator[Transport]:
    connection = OfficialConnection(settings.KUBECONFIG)
    try:
        yield Transport(connection, user_agent=USER_AGENT)
    finally:
        connection.close()


@shared_task(name="hami.sample", throws=EXPECTED)
def sample() -> None:
    """Store the use of this moment."""
    samples.take_sample(datetime.now(UTC))


@shared_task(name="hami.prune", throws=EXPECTED)
def prune() -> int:
    """Forget what is older than history is kept."""
    now = datetime.now(UTC)
    found = pruning.prune(now - timedelta(days=settings.HISTORY_DAYS))
    return found + prune_access(now, audit_days=settings.AUDIT_DAYS)
