"""Durations, queues and watches as metrics."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hami_web.metrics.activity import SchedulingCollector
from hami_web.metrics.exposition import render
from hami_web.metrics.series import collect_all
from hami_web.metrics.watches import WatchCollector
from hami_web.scheduling.bind_queue import BindQueue
from hami_web.scheduling.measures import Durations
from hami_web.scheduling.realizations import Realizations


class Watch:
    name = "pods"
    relists = 3
    failures = 2

    def age_s(self):
        return 1.5

    def list_age_s(self):
        return None


@pytest.fixture
def core():
    return SimpleNamespace(
        reflectors=(Watch(),),
        queue=BindQueue(most_waiting=4),
        binder=SimpleNamespace(durations=Durations(), lock_waits=Durations(), unsettled=["x"]),
        waiting=["a", "b"],
        waker=SimpleNamespace(woken=7),
        realizations=Realizations(),
        decider=SimpleNamespace(filter_durations=Durations(), rejections={"CardNotHealth": 3}),
        log=SimpleNamespace(dropped=5),
    )


def scrape(core):
    collectors = (SchedulingCollector(core), WatchCollector(core.reflectors))
    families = text_string_to_metric_families(render(collect_all(collectors)).decode())
    return {
        (s.name, *sorted(s.labels.items())): s.value for family in families for s in family.samples
    }


def test_durations_are_cumulative_histograms(core):
    for seconds in (0.0002, 0.003, 0.003, 99.0):
        core.decider.filter_durations.observe(seconds)
    found = scrape(core)
    name = "hami_scheduler_filter_duration_seconds"
    assert found[f"{name}_bucket", ("le", "0.0005")] == 1
    assert found[f"{name}_bucket", ("le", "0.005")] == 3
    assert found[f"{name}_bucket", ("le", "30.0")] == 3
    assert found[f"{name}_bucket", ("le", "+Inf")] == 4
    assert found[f"{name}_count",] == 4
    assert found[f"{name}_sum",] == pytest.approx(99.0062)


def test_queues_and_waiting_pods_are_counted(core):
    with core.queue.turn("n1", deadline=time.monotonic() + 1):
        found = scrape(core)
    assert found["hami_scheduler_bind_queue_depth", ("node", "n1")] == 1
    assert found["hami_scheduler_waiting_pods",] == 2
    assert found["hami_scheduler_woken_pods_total",] == 7


def test_watches_show_silence_lists_and_failures(core):
    found = scrape(core)
    assert found["hami_informer_silence_seconds", ("resource", "pods")] == 1.5
    assert ("hami_informer_last_list_timestamp_seconds", ("resource", "pods")) not in found
    assert found["hami_informer_relists_total", ("resource", "pods")] == 3
    assert found["hami_informer_failures_total", ("resource", "pods")] == 2


def test_refusals_are_counted_by_reason_and_open_binds_are_shown(core):
    found = scrape(core)
    assert found["hami_scheduler_filter_rejections_total", ("reason", "CardNotHealth")] == 3
    assert found["hami_scheduler_unsettled_binds",] == 1
