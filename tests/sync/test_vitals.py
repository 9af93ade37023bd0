"""A worker that has stopped, wholly or in part, is noticed by whoever is alive."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hami_web.history.conditions import AlertCode
from hami_web.history.drift import note_caught_up
from hami_web.history.models import Alert, Heartbeat, Reconciliation
from hami_web.history.vitals import VitalsWatch, note_pulse, refresh_vitals
from hami_web.sync import tasks
from tests.mirror.observations import moment

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"


def refresh(seconds: float) -> list[str]:
    """Parts that are silent, and that there is an alert for each."""
    found = refresh_vitals(moment(seconds), compare_every_s=60)
    silent = [vital.part.value for vital in found if vital.silent]
    open_alerts = Alert.objects.filter(code="WorkerSilent", resolved_at=None)
    assert sorted(silent) == sorted(open_alerts.values_list("subject", flat=True))
    return silent


def all_work(seconds: float) -> None:
    note_caught_up(moment(seconds))
    note_pulse(moment(seconds))
    Reconciliation.objects.create(
        began_at=moment(seconds), finished_at=moment(seconds), nodes=0, pods=0, corrections=0
    )


@pytest.mark.django_db
def test_a_worker_that_never_ran_is_no_alarm() -> None:
    assert refresh(0) == []


@pytest.mark.django_db
def test_each_part_has_its_own_patience() -> None:
    all_work(0)
    assert refresh(119) == []
    assert refresh(121) == ["queue"]
    assert refresh(181) == ["feed", "queue"]
    assert refresh(361) == ["feed", "queue", "comparison"]


@pytest.mark.django_db
def test_nothing_is_written_while_everything_works(django_assert_num_queries) -> None:
    all_work(0)
    with django_assert_num_queries(4):
        refresh_vitals(moment(1), compare_every_s=60)


@pytest.mark.django_db
def test_a_part_that_works_again_ends_its_alert() -> None:
    all_work(0)
    refresh(130)
    all_work(131)
    refresh_vitals(moment(140), compare_every_s=60)
    refresh_vitals(moment(251), compare_every_s=60)
    row = Alert.objects.get()
    assert (row.subject, row.resolved_at) == ("queue", moment(251))


@pytest.mark.django_db
def test_the_pulse_is_a_task_of_the_queue() -> None:
    before = datetime.now(UTC)
    tasks.pulse()
    assert Heartbeat.objects.get(name="queue").at >= before


@pytest.mark.django_db(transaction=True)
def test_a_thread_elsewhere_raises_the_alert_and_has_the_words_for_it() -> None:
    note_pulse(datetime.now(UTC) - timedelta(minutes=5))
    watch = VitalsWatch(compare_every_s=60, every_s=0.05)
    watch.start()
    try:
        deadline = time.monotonic() + 20
        while not watch.notices():
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        watch.stop()
    assert Alert.objects.get().subject == "queue"
    assert "queue: silent since" in watch.notices()[0]


@pytest.mark.parametrize("code", sorted(AlertCode))
def test_every_alert_has_a_row_that_says_what_to_do(code: AlertCode) -> None:
    text = OPERATIONS.read_text()
    assert re.search(rf"^\| `{code.value}` \| .+ \| .+ \|$", text, re.MULTILINE)
