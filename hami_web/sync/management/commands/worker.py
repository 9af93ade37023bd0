"""``manage.py worker``: feed, beat and tasks of the mirror in one process."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any, Final

from celery.beat import Service
from celery.exceptions import OperationalError
from django.conf import settings
from django.core.management import call_command
from django.db import connection

from hami_web.celery import app
from hami_web.core.policy import parse_scheduling_policy
from hami_web.history.tenure import FeedTenure
from hami_web.history.vitals import VitalsWatch
from hami_web.inventory.standing import watch_database
from hami_web.metrics.exposition import render
from hami_web.metrics.series import collect_all
from hami_web.metrics.server import MetricsServer, start_server
from hami_web.metrics.watches import WatchCollector
from hami_web.standing import Standing, first_problem
from hami_web.startup import RoleCommand, require_cluster
from hami_web.sync import measuring, progress
from hami_web.sync.beat import TaskScheduler
from hami_web.sync.decisions import DecisionClient, DecisionReader, ExtenderAddress
from hami_web.sync.feed import Feed
from hami_web.sync.keeper import FeedKeeper
from hami_web.sync.queue import tell_without_traces, watch_queue
from hami_web.sync.series import MirrorCollector
from hami_web.sync.signing import signing_keys
from hami_web.sync.tasks import reconcile

logger = logging.getLogger(__name__)

SILENT_TURNS: Final = 5
"""So many reconciliations may fail or not come before the worker counts as stuck."""
EXIT_STUCK: Final = 70


class Command(RoleCommand):
    """Keep the mirror until SIGTERM."""

    help = "Keep the mirror equal to the cluster: live feed, reconciliation, samples, pruning."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Configured by environment, but for the first start."""
        parser.add_argument("--migrate", action="store_true", help="bring the database up to date")

    def handle(self, *_arguments: Any, **options: Any) -> None:
        """Run Celery in this thread, everything else beside it."""
        # Until Celery takes the signal: everything may be left at any time, in order.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        require_cluster(settings.KUBECONFIG)
        if options["migrate"]:
            call_command("prepare", verbosity=0)
        stopped = threading.Event()
        feed = FeedKeeper(_feed, began=_compare)
        standings = (watch_database(), watch_queue())
        metrics = _metrics(feed, standings)
        for standing in standings:
            standing.start()
        for standing in standings:
            standing.wait()
        progress.note()
        tell_without_traces()
        measuring.connect()
        beat = Service(app, scheduler_cls=TaskScheduler)
        ticking = threading.Thread(target=beat.start, name="beat", daemon=True)
        threads = (
            ticking,
            threading.Thread(target=_watch, args=(stopped, ticking), name="watchdog", daemon=True),
        )
        watch = VitalsWatch(compare_every_s=settings.RECONCILE_SECONDS)
        decisions = _decisions()
        feed.start()
        watch.start()
        decisions.start()
        for thread in threads:
            thread.start()
        try:
            app.worker_main(
                ["worker", "--pool=threads", "--concurrency=2", "--without-gossip",
                 "--without-mingle", "--loglevel=INFO"]
            )  # fmt: skip
        finally:
            stopped.set()
            beat.stop()
            watch.stop()
            decisions.stop()
            feed.stop()
            for standing in standings:
                standing.stop()
            if metrics is not None:
                metrics.close()


def _feed(tenure: FeedTenure) -> Feed:
    return Feed(settings.KUBECONFIG, settings.NAMESPACE, tenure, keys=signing_keys())


def _compare() -> None:
    """Find what happened while nobody fed the mirror; without a queue beat does so later."""
    try:
        reconcile.apply_async(expires=settings.RECONCILE_SECONDS, retry=False)
    except OperationalError as error:
        logger.warning("the queue cannot be reached: %s", error)


def _metrics(feed: FeedKeeper, standings: Sequence[Standing]) -> MetricsServer | None:
    """The server of this process's series and of its readiness, where one is configured."""
    collectors = (MirrorCollector(), WatchCollector(feed))

    def text() -> bytes:
        try:
            return render(collect_all(collectors))
        finally:
            connection.close()  # each answer has a thread of its own

    def problem() -> str:
        # An API server that went away later is no reason: what is known stays known.
        unknown = (watch.problem for watch in feed if not watch.synced.is_set())
        return first_problem(standings) or next(filter(None, unknown), "")

    return start_server(settings.METRICS_LISTEN, text, problem)


def _decisions() -> DecisionReader:
    address = ExtenderAddress(settings.EXTENDER_URL, settings.EXTENDER_CA)
    policy = parse_scheduling_policy(settings.SCHEDULING_POLICY)
    return DecisionReader(DecisionClient(address), hold_s=policy.hold_seconds)


def _watch(stopped: threading.Event, beat: threading.Thread) -> None:
    """End a process whose queue or beat has silently stopped, so that it is started anew."""
    limit_s = SILENT_TURNS * settings.RECONCILE_SECONDS + 60
    while not stopped.wait(1.0):
        if not beat.is_alive():
            logger.critical("beat has ended: this worker ends")
            os._exit(EXIT_STUCK)
        if progress.age_s() > limit_s:
            logger.critical("no task was finished for %.0f s: this worker ends", limit_s)
            os._exit(EXIT_STUCK)
