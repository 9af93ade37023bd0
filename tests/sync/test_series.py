"""The mirror's metrics, from the database."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from celery.signals import task_postrun, task_prerun
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError
from prometheus_client.parser import text_string_to_metric_families

from hami_web.cluster.errors import Forbidden
from hami_web.history import tallies
from hami_web.history.drift import note_caught_up, record_reconciliation
from hami_web.history.models import Alert, Reconciliation
from hami_web.inventory.mirror import mirror_nodes
from hami_web.inventory.observed import Difference, DifferenceKind
from hami_web.metrics.exposition import render
from hami_web.metrics.server import start_server
from hami_web.reservations.mirror import mirror_pods
from hami_web.sync import measuring, tasks
from hami_web.sync.series import MirrorCollector
from tests.mirror.observations import gpu, moment, node, placed, pod

GOLDEN = Path(__file__).parent / "mirror.txt"
pytestmark = pytest.mark.django_db


def scrape() -> dict:
    text = render(MirrorCollector().collect()).decode()
    return {
        (s.name, *sorted(s.labels.values())): s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }


@pytest.fixture
def measured():
    """Celery's signals, as the worker listens to them."""
    measuring.connect()
    yield
    for signal in (task_prerun, task_postrun):
        signal.disconnect(dispatch_uid="hami-measuring")


def filled() -> None:
    """Every family with a sample, the same at any time."""
    mirror_nodes([node("n1", (gpu("GPU-0"),))], seen_at=moment(0), now=moment(0))
    mirror_pods([pod("a", placed(0))], seen_at=moment(1), now=moment(1))
    run = Reconciliation(began_at=moment(2), finished_at=moment(3), nodes=1, pods=1)
    lost = Difference(DifferenceKind.MISSING, "reservation", "team/a")
    record_reconciliation(run, [lost, lost], fed=True)
    Alert.objects.create(
        code="AgentStale", subject="n1", text="x", raised_at=moment(0), seen_at=moment(0)
    )
    tallies.add(
        {
            ("tasks", "succeeded", "reconcile"): 2,
            ("task seconds", "reconcile", "9"): 2,
            ("task seconds", "reconcile", "sum"): 0.75,
            ("reconciliations skipped", "cluster"): 1,
        }
    )
    tallies.keep_latest(("task succeeded at", "reconcile"), 1767225600.0)


def test_the_whole_text_is_as_agreed() -> None:
    filled()
    assert render(MirrorCollector().collect()).decode() == GOLDEN.read_text()


def test_a_scrape_takes_a_fixed_number_of_queries(django_assert_num_queries) -> None:
    filled()
    with django_assert_num_queries(6):
        scrape()


def test_the_lag_is_the_time_since_the_feed_was_written() -> None:
    assert ("hami_mirror_lag_seconds",) not in scrape()
    note_caught_up(datetime.now(UTC) - timedelta(seconds=30))
    assert 30 <= scrape()["hami_mirror_lag_seconds",] < 60


def test_tasks_are_counted_with_outcome_duration_and_last_success(measured) -> None:
    before = time.time()
    tasks.sample.apply().get()
    tasks.sample.apply().get()
    found = scrape()
    assert found["hami_worker_tasks_total", "sample", "succeeded"] == 2
    assert found["hami_worker_task_duration_seconds_count", "sample"] == 2
    assert found["hami_worker_task_duration_seconds_sum", "sample"] > 0
    last = found["hami_worker_task_last_success_timestamp_seconds", "sample"]
    assert before <= last <= time.time()


def test_a_reconciliation_without_a_cluster_is_counted_as_skipped(
    measured, settings, tmp_path, caplog
) -> None:
    settings.KUBECONFIG = tmp_path / "kubeconfig"
    settings.KUBECONFIG.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {}}]\n"
        "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:9'}}]\n"
    )
    assert tasks.reconcile.apply().failed()
    found = scrape()
    assert found["hami_worker_tasks_total", "failed", "reconcile"] == 1
    assert found["hami_reconcile_skipped_total", "cluster"] == 1
    assert not [key for key in found if "last_success" in key[0]]


def test_a_failure_has_one_of_three_reasons() -> None:
    errors = (Forbidden("x"), DatabaseError("x"), KeyError("x"))
    assert [measuring.reason_of(error) for error in errors] == ["cluster", "database", "fault"]


def test_without_a_database_a_scrape_says_so(monkeypatch) -> None:
    def gone() -> None:
        raise DatabaseError("gone")

    monkeypatch.setattr("hami_web.sync.series.feed_caught_up_at", gone)
    assert scrape() == {("hami_mirror_up",): 0}


def test_tallies_add_up() -> None:
    for amount in (1, 2.5):
        tallies.add({("tasks", "failed", "prune"): amount, ("tasks", "failed", "sample"): 1})
    assert tallies.all_tallies() == {
        ("tasks", "failed", "prune"): 3.5,
        ("tasks", "failed", "sample"): 2,
    }


def test_an_earlier_time_never_replaces_a_later_one() -> None:
    for value in (5.0, 9.0, 7.0):
        tallies.keep_latest(("task succeeded at", "x"), value)
    assert tallies.all_tallies() == {("task succeeded at", "x"): 9.0}


def test_the_server_answers_for_metrics_alone() -> None:
    server = start_server("127.0.0.1:0", lambda: b"hami_mirror_up 1.0\n")
    assert server is not None
    try:
        address = f"http://127.0.0.1:{server.port}"
        with urllib.request.urlopen(f"{address}/metrics", timeout=5) as answer:
            assert answer.read() == b"hami_mirror_up 1.0\n"
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{address}/", timeout=5)
        assert caught.value.code == 404
        caught.value.close()
    finally:
        server.close()


@pytest.mark.parametrize("listen", ["9000", "localhost:x", "localhost:70000", "192.0.2.1:9000"])
def test_an_address_that_cannot_be_used_is_named(listen: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"HAMI_METRICS_LISTEN: {listen}"):
        start_server(listen, bytes)
    assert start_server("", bytes) is None
