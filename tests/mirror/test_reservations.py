"""The life of a reservation, as rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.db import IntegrityError, transaction

from hami_web.inventory.mirror import mirror_nodes
from hami_web.reservations.mirror import mirror_pods, release_pods
from hami_web.reservations.models import (
    ContestedMemorySlice,
    MemorySliceClaim,
    MigReservation,
    Phase,
    ReservationDoubt,
)

from .observations import GPUS, IDENTITY, moment, node, placed, pod

pytestmark = pytest.mark.django_db


def see(seconds: float, *pods, complete: bool = False):
    return mirror_pods(pods, seen_at=moment(seconds), now=moment(seconds), complete=complete)


def only() -> MigReservation:
    return MigReservation.objects.get()


def test_a_life_is_one_row_with_the_time_of_each_step() -> None:
    see(10, pod("a", placed(0), reserved_at=moment(8)))
    see(12, pod("a", placed(0, identity=IDENTITY), reserved_at=moment(8)))
    see(50, pod("a", placed(0, identity=IDENTITY), reserved_at=moment(8), deleting=True))
    release_pods(["a"], seen_at=moment(80), now=moment(80))
    row = only()
    steps = (row.reserved_at, row.realized_at, row.terminating_at, row.released_at)
    assert steps == (moment(8), moment(12), moment(50), moment(80))
    assert row.phase == Phase.RELEASED
    assert not MemorySliceClaim.objects.exists()


def test_figures_of_gpu_and_profile_are_kept_with_the_row() -> None:
    mirror_nodes([node()], seen_at=moment(0), now=moment(0))
    see(1, pod("a", placed(0)))
    assert (only().gpu_memory_slices, only().memory_mib) == (8, 4864)


def test_another_place_is_another_reservation() -> None:
    see(1, pod("a", placed(0)))
    see(5, pod("a", placed(3)))
    old, new = MigReservation.objects.order_by("id")
    assert (old.released_at, new.released_at, new.start) == (moment(5), None, 3)


def test_overlapping_reservations_are_a_visible_conflict_and_end_with_one_of_them() -> None:
    see(1, pod("a", placed(0, 2)))
    see(2, pod("b", placed(1, 1)))
    assert set(MigReservation.objects.values_list("phase", flat=True)) == {Phase.CONFLICTED}
    contested = ContestedMemorySlice.objects.get()
    assert (contested.reservation.pod, contested.memory_slice) == ("b", 1)
    release_pods(["a"], seen_at=moment(3), now=moment(3))
    assert MigReservation.objects.get(pod="b").phase == Phase.RESERVED
    assert MemorySliceClaim.objects.get().reservation.pod == "b"
    assert not ContestedMemorySlice.objects.exists()


def test_a_pod_in_doubt_keeps_its_rows() -> None:
    see(1, pod("a", placed(0)))
    see(9, pod("a", doubt="its annotation cannot be read"), complete=True)
    assert only().released_at is None


def test_an_older_observation_does_not_overwrite_a_newer_one() -> None:
    see(10, pod("a", placed(0, identity=IDENTITY)))
    mirror_pods([pod("a", placed(0))], seen_at=moment(5), now=moment(11))
    mirror_pods([], seen_at=moment(5), now=moment(11), complete=True)
    assert (only().phase, only().mig_uuid) == (Phase.REALIZED, IDENTITY.mig_uuid)


def test_an_older_list_does_not_revive_what_ended_since() -> None:
    see(1, pod("a", placed(0)))
    release_pods(["a"], seen_at=moment(5), now=moment(5))
    listed = [pod("a", placed(0)), pod("b", placed(3))]
    mirror_pods(listed, seen_at=moment(4), now=moment(6), complete=True)
    rows = MigReservation.objects.order_by("id").values_list("pod", "released_at")
    assert list(rows) == [("a", moment(5)), ("b", None)]
    # A list that began after the end and still has the Pod knows better.
    mirror_pods(listed, seen_at=moment(7), now=moment(7), complete=True)
    assert MigReservation.objects.filter(pod="a", released_at=None).count() == 1


def test_the_database_refuses_a_second_claim_of_a_memory_slice() -> None:
    see(1, pod("a", placed(0)), pod("b", placed(1)))
    other = MigReservation.objects.get(pod="b")
    with pytest.raises(IntegrityError), transaction.atomic():
        MemorySliceClaim.objects.create(reservation=other, gpu_uuid=GPUS[0], memory_slice=0)


@pytest.mark.parametrize(
    "damage",
    [
        {"mig_uuid": "MIG-1"},
        {"size": 0},
        {"phase": Phase.RELEASED},
        {"released_at": moment(0), "phase": Phase.RELEASED},
    ],
)
def test_the_database_refuses_a_row_that_contradicts_itself(damage) -> None:
    see(1, pod("a", placed(0)))
    with pytest.raises(IntegrityError), transaction.atomic():
        MigReservation.objects.update(**damage)


def test_a_second_live_row_of_a_device_is_refused() -> None:
    see(1, pod("a", placed(0)))
    row = only()
    row.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        row.save(force_insert=True)


def test_a_time_after_the_observation_is_not_believed() -> None:
    see(5, pod("a", placed(0), reserved_at=moment(99)))
    assert only().reserved_at == moment(5)


def test_seeing_the_same_again_changes_nothing() -> None:
    seen = pod("a", placed(0), reserved_at=moment(1))
    see(2, seen)
    assert see(3, replace(seen), complete=True) == []
    assert only().changed_at == moment(2)


def test_an_older_list_neither_revives_nor_ends_a_doubt() -> None:
    see(1, pod("a", doubt="not JSON"))
    see(5, pod("a"), pod("b", doubt="not JSON"))
    mirror_pods([pod("a", doubt="not JSON")], seen_at=moment(3), now=moment(6), complete=True)
    found = ReservationDoubt.objects.values_list("pod", "began_at", "ended_at")
    assert set(found) == {("a", moment(1), moment(5)), ("b", moment(5), None)}
