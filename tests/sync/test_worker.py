"""The worker as a process, on a simulated API server: followed, killed, and without its queue."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hami_web.simulator.client import ApiClient
from tests.metrics.promtool import complaints, needs_promtool

from .processes import Redis, Worker, bind, delete, slowness

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture
def worker(api: ApiClient, tmp_path: Path) -> Iterator[Worker]:
    worker = Worker(tmp_path, tmp_path / "kubeconfig", "filesystem://")
    worker.start()
    yield worker
    worker.close()


def test_the_feed_is_seen_within_a_second_and_the_worker_stops_when_told(
    worker: Worker, api: ApiClient
) -> None:
    worker.soon(lambda: worker.rows("SELECT 1 FROM history_feed") and worker.runs())
    bind(api, "job", 0)
    assert worker.soon(lambda: worker.live() == {"job"}) < slowness()
    delete(api, "job")
    assert worker.soon(lambda: worker.live() == set()) < slowness()
    assert worker.end(signal.SIGTERM) == 0


@needs_promtool
def test_promtool_finds_no_fault_with_what_the_worker_serves(
    worker: Worker, api: ApiClient
) -> None:
    bind(api, "job", 0)
    worker.soon(lambda: worker.live() == {"job"} and worker.runs())
    worker.soon(lambda: worker.metric("hami_mirror_up") == 1)
    assert complaints(worker.served()) == {}


def test_what_happened_while_a_killed_worker_was_away_is_made_up_for(
    worker: Worker, api: ApiClient
) -> None:
    bind(api, "gone", 0)
    worker.soon(lambda: worker.live() == {"gone"} and worker.runs())
    worker.end(signal.SIGKILL)
    delete(api, "gone")
    bind(api, "new", 0)
    worker.start()
    worker.soon(lambda: worker.live() == {"new"})
    worker.soon(lambda: worker.rows("PRAGMA integrity_check") == [("ok",)])


def test_two_workers_at_once_write_each_row_once(worker: Worker, api: ApiClient) -> None:
    worker.soon(worker.runs)
    second = Worker(worker.folder, worker.folder / "kubeconfig", "filesystem://")
    second.start()
    try:
        for start in range(3):
            bind(api, f"job-{start}", start)
        before = worker.runs()
        worker.soon(lambda: worker.runs() > before + 4)
        assert worker.live() == {"job-0", "job-1", "job-2"}
        query = "SELECT count(*) FROM reservations_migreservation"
        assert worker.rows(query) == [(3,)]
    finally:
        second.close()


def test_rows_changed_by_hand_are_corrected_and_counted(worker: Worker, api: ApiClient) -> None:
    bind(api, "job", 0)
    worker.soon(lambda: worker.live() == {"job"} and worker.runs() > 1)
    worker.rows("DELETE FROM reservations_memorysliceclaim")
    worker.rows("DELETE FROM reservations_migreservation")
    worker.soon(lambda: worker.live() == {"job"})
    query = "SELECT cause FROM history_drift WHERE kind = 'missing' AND entity = 'reservation'"
    worker.soon(lambda: ("altered",) in worker.rows(query))


def test_any_worker_tells_the_same_of_the_mirror_and_goes_on_counting(
    worker: Worker, api: ApiClient
) -> None:
    bind(api, "job", 0)
    corrected = 'hami_mirror_corrections_total{cause="altered",entity="reservation",kind="missing"}'
    ended = 'hami_worker_tasks_total{outcome="succeeded",task="reconcile"}'
    worker.soon(lambda: worker.metric('hami_mirror_rows{entity="reservation"}') == 1)
    worker.soon(lambda: worker.runs() > 1 and (worker.metric(ended) or 0) > 1)
    worker.rows("DELETE FROM reservations_memorysliceclaim")
    worker.rows("DELETE FROM reservations_migreservation")
    worker.soon(lambda: worker.metric(corrected) == 1)
    before = worker.metric(ended)
    worker.end(signal.SIGKILL)
    second = Worker(worker.folder, worker.folder / "kubeconfig", "filesystem://")
    second.start()
    try:
        second.soon(lambda: (second.metric(ended) or 0) > before)
        assert second.metric(corrected) == 1
        second.soon(lambda: second.metric('hami_informer_relists_total{resource="pods"}'))
        assert second.metric("hami_mirror_lag_seconds") < 10
    finally:
        second.close()


def test_redis_may_restart_and_forget_and_reconciliation_goes_on(
    redis: Redis, api: ApiClient, tmp_path: Path
) -> None:
    worker = Worker(tmp_path, tmp_path / "kubeconfig", redis.url)
    worker.start()
    try:
        worker.soon(lambda: worker.runs() > 1)
        for name in ("first", "second"):
            redis.stop()
            bind(api, name, len(worker.live()))
            assert worker.soon(lambda name=name: name in worker.live()) < slowness()
            redis.start()
            before = worker.runs()
            worker.soon(lambda before=before: worker.runs() > before + 1)
        assert worker.live() == {"first", "second"}
    finally:
        worker.close()


def test_a_check_that_was_asked_for_is_performed_also_after_a_kill(
    worker: Worker, api: ApiClient
) -> None:
    worker.soon(worker.runs)
    worker.end(signal.SIGKILL)
    worker.rows(
        "INSERT INTO migration_migrationrun (state, requested_at, requested_by, node, error, part,"
        " parts_done, parts, cancelled_by)"
        " VALUES ('requested', '2026-01-01 00:00:00', 'ann', '', '', '', 0, 0, '')"
    )
    worker.start()
    worker.soon(lambda: worker.rows("SELECT state FROM migration_migrationrun") == [("finished",)])
    assert worker.rows("SELECT node FROM migration_nodereadiness") == [("n1",)]
    codes = {code for (code,) in worker.rows("SELECT code FROM migration_finding")}
    assert {"WebhookMissing", "RightMissing"} & codes
