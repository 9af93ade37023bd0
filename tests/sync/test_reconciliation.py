"""Corrections, their causes, samples and pruning."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hami_web.history.drift import note_caught_up
from hami_web.history.models import Drift, Reconciliation, Sample
from hami_web.history.pruning import prune
from hami_web.history.samples import take_sample
from hami_web.inventory.models import Gpu
from hami_web.reservations import selectors
from hami_web.reservations.mirror import mirror_pods, release_pods
from hami_web.reservations.models import MigReservation
from hami_web.sync.reconcile import ClusterList, reconcile
from tests.mirror.observations import IDENTITY, moment, node, placed, pod

pytestmark = pytest.mark.django_db


def compare(seconds: float, *pods, nodes=None) -> Reconciliation:
    listed = ClusterList(moment(seconds), moment(seconds), tuple(nodes or [node()]), tuple(pods))
    return reconcile(listed)


def drifts() -> set[tuple[str, str, str]]:
    return set(Drift.objects.values_list("cause", "kind", "entity"))


def test_the_first_comparison_fills_the_mirror_and_the_second_finds_nothing() -> None:
    assert compare(1, pod("a", placed(0))).corrections == 3
    assert {cause for cause, _, _ in drifts()} == {"first"}
    assert compare(2, pod("a", placed(0))).corrections == 0


def test_rows_changed_deleted_and_invented_by_hand_are_corrected_and_counted() -> None:
    listed = (pod("a", placed(0)), pod("b", placed(1)), pod("c", placed(2)))
    compare(1, *listed)
    note_caught_up(moment(99))
    MigReservation.objects.filter(pod="a").update(node="elsewhere")
    MigReservation.objects.filter(pod="b").delete()
    Gpu.objects.update(model="other")
    row = MigReservation.objects.get(pod="c")
    row.pk, row.pod_uid, row.start = None, "invented", 6
    row.save(force_insert=True)
    Drift.objects.all().delete()
    assert compare(9, *listed).corrections == 4
    assert drifts() == {
        ("altered", "changed", "reservation"),
        ("altered", "missing", "reservation"),
        ("altered", "vanished", "reservation"),
        ("altered", "changed", "gpu"),
    }


def test_what_vanished_while_nobody_followed_is_closed_and_said_so() -> None:
    compare(1, pod("a", placed(0)))
    Drift.objects.all().delete()
    compare(500)
    assert drifts() == {("unwatched", "vanished", "reservation")}
    assert MigReservation.objects.get().released_at == moment(500)


def test_a_sample_counts_memory_slices_and_twice_is_once() -> None:
    compare(0, pod("a", placed(1, identity=IDENTITY)), pod("b", placed(4, 4)), pod("c", placed(3)))
    for _ in range(2):
        take_sample(moment(5))
    cluster = Sample.objects.get(node="")
    counted = (
        cluster.gpus,
        cluster.memory_slices,
        cluster.reserved_memory_slices,
        cluster.realized_memory_slices,
    )
    assert counted == (1, 8, 6, 1)
    assert 0 < cluster.fragmentation < 1
    assert Sample.objects.filter(node="n1").count() == 1


def test_pruning_forgets_only_what_is_over_and_old() -> None:
    compare(0, pod("old", placed(0)), pod("live", placed(1)))
    release_pods(["old"], seen_at=moment(10), now=moment(10))
    assert prune(moment(5)) == 1  # the run that began before
    assert prune(moment(5) + timedelta(days=1)) == 1
    assert list(MigReservation.objects.values_list("pod", flat=True)) == ["live"]


def test_the_state_at_any_moment_is_one_query(django_assert_num_queries) -> None:
    mirror_pods([pod("a", placed(0))], seen_at=moment(10), now=moment(10))
    release_pods(["a"], seen_at=moment(20), now=moment(20))
    with django_assert_num_queries(3):
        found = [
            MigReservation.objects.filter(selectors.there_at(moment(second))).count()
            for second in (9, 10, 20)
        ]
    assert found == [0, 1, 0]
