"""One worker feeds the mirror at a time, and whoever lost the feed writes nothing."""

from __future__ import annotations

import signal
import sqlite3
import threading
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models.functions import Now

from hami_web.history.models import Feed, Tenure
from hami_web.history.tenure import TENURE, FeedTenure, TenureLost
from hami_web.reservations.models import MigReservation
from hami_web.simulator.client import ApiClient
from hami_web.sync.changes import Batch
from hami_web.sync.keeper import FeedKeeper
from hami_web.sync.writer import write_batch
from tests.mirror.observations import moment, node, placed, pod

from .processes import Worker, bind, delete

BATCH = Batch((node(),), (), (pod("job", placed(0)),), (), ())


def silent_for_too_long() -> None:
    Tenure.objects.update(until=Now() - timedelta(milliseconds=1))


@pytest.mark.django_db
def test_only_one_holds_the_feed_until_it_is_released() -> None:
    first, second = FeedTenure("first"), FeedTenure("second")
    assert first.take()
    assert first.take()
    assert not second.take()
    second.release()
    assert not second.take()
    first.release()
    assert second.take()
    assert not first.take()


@pytest.mark.django_db
def test_a_silent_holder_is_followed_and_one_that_writes_is_not() -> None:
    first, second = FeedTenure("first"), FeedTenure("second")
    first.take()
    silent_for_too_long()
    write_batch(BATCH, first, seen_at=moment(1))
    assert not second.take()
    silent_for_too_long()
    assert second.take()


@pytest.mark.django_db(transaction=True)
def test_nothing_of_a_batch_is_written_by_one_that_was_followed() -> None:
    first, second = FeedTenure("first"), FeedTenure("second")
    first.take()
    silent_for_too_long()
    second.take()
    with pytest.raises(TenureLost):
        write_batch(BATCH, first, seen_at=moment(2))
    assert not MigReservation.objects.exists()
    assert not Feed.objects.exists()
    write_batch(BATCH, second, seen_at=moment(1))
    assert MigReservation.objects.count() == 1


def freeze(worker: Worker) -> None:
    """Let the process stand still, but not inside of a write, where it would hold up all others."""
    assert worker._process is not None
    while True:
        worker._process.send_signal(signal.SIGSTOP)
        try:
            with closing(sqlite3.connect(worker.folder / "hami.sqlite3", timeout=0.2)) as database:
                database.execute("BEGIN IMMEDIATE")
                database.rollback()
        except sqlite3.OperationalError:
            worker._process.send_signal(signal.SIGCONT)
            time.sleep(0.01)
        else:
            return


class Fed:
    """A feed that says that it runs, and ends at once."""

    def __init__(self, runs: threading.Event) -> None:
        self.reflectors = ()
        self._runs = runs

    def run(self, stopped: threading.Event) -> None:
        self._runs.set()
        stopped.wait(10)


@pytest.mark.django_db(transaction=True)
def test_a_queue_that_hangs_does_not_keep_the_feed_waiting() -> None:
    runs, hangs = threading.Event(), threading.Event()
    keeper = FeedKeeper(lambda _tenure: Fed(runs), began=lambda: hangs.wait(30))
    keeper.start()
    try:
        assert runs.wait(10)
    finally:
        hangs.set()
        keeper.stop()


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_worker_that_stood_still_does_not_write_what_it_saw_before(
    api: ApiClient, tmp_path: Path
) -> None:
    first = Worker(tmp_path, tmp_path / "kubeconfig", "filesystem://")
    second = Worker(tmp_path, tmp_path / "kubeconfig", "filesystem://")
    first.log, second.log = tmp_path / "first.log", tmp_path / "second.log"
    query = "SELECT pod, released_at IS NULL FROM reservations_migreservation ORDER BY id"
    try:
        first.start()
        first.soon(lambda: first.rows("SELECT 1 FROM history_feed"))
        second.start()
        freeze(first)
        stopped = time.monotonic()
        bind(api, "job", 0)
        second.soon(lambda: second.rows(query) == [("job", 1)])
        assert time.monotonic() - stopped < 3 * TENURE.total_seconds()
        delete(api, "job")
        second.soon(lambda: second.rows(query) == [("job", 0)])
        first._process.send_signal(signal.SIGCONT)
        first.soon(lambda: "another worker feeds the mirror" in first.log.read_text())
        bind(api, "next", 0)
        second.soon(lambda: second.rows(query) == [("job", 0), ("next", 1)])
        assert second.end(signal.SIGTERM) == 0
        delete(api, "next")
        first.soon(lambda: first.rows(query) == [("job", 0), ("next", 0)])
    finally:
        first.close()
        second.close()
