"""Drain plans of the mirrored cluster hold in the extender's state."""

from __future__ import annotations

import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from hami_web.core.placement import Placement
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.reservation import Reservation
from hami_web.planning.drain import (
    MOVED,
    WANTED,
    DrainAnswer,
    DrainQuestion,
    free_now,
    plan,
)
from hami_web.planning.records import read_protected, read_records
from tests.boards import board

from .clusters import Cluster, bound, clusters, node

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(300)]
profiles = st.sampled_from(["1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb", "1g.6gb", "2g.12gb"])


def plan_of(question: DrainQuestion) -> DrainAnswer | None:
    return plan(read_records(), question, read_protected())


def owners(answer: DrainAnswer) -> set[str]:
    return {move.claims[0].pod.uid for move in answer.moves}


@given(clusters(), profiles, st.integers(1, 4), st.sampled_from([0, 1, 10**9]))
def test_once_its_pods_have_moved_the_placements_are_free(
    cluster, profile, count, max_priority
) -> None:
    with transaction.atomic():
        cluster.mirror()
        answer = plan_of(DrainQuestion(profile, count, max_priority))
        transaction.set_rollback(True)
    if answer is None:
        return
    moved = owners(answer)
    stays = {p.uid for p in cluster.pods if "hami.io/do-not-evict" in p.annotations}
    assert not moved & stays
    assert all(move.claims[0].pod.priority <= max_priority for move in answer.moves)
    assert len(answer.placements) == count
    leaving = {p.uid for p in cluster.pods if p.is_deleting}
    cluster.pods = [p for p in cluster.pods if p.uid not in moved | leaving]
    records = cluster.extender(SchedulingPolicy()).snapshot().nodes
    for change in answer.changes:
        gpu = records[change.node].gpu(change.gpu_uuid)
        assert gpu is not None
        taken = gpu.state & gpu.table.slice_mask
        for item in change.after:
            if item.state in (WANTED, MOVED):
                assert not taken & item.placement.mask
                assert item.placement in gpu.table.by_name[item.profile].placements
                taken |= item.placement.mask


@given(clusters(), profiles)
def test_what_is_free_already_moves_nobody(cluster, profile) -> None:
    with transaction.atomic():
        cluster.mirror()
        free = free_now(read_records(), profile)
        answer = plan_of(DrainQuestion(profile, free)) if free else None
        transaction.set_rollback(True)
    assert answer is None or answer.moves == ()


def two_gpus(**more: object) -> Cluster:
    gpus = (board(uuid="A"), board(uuid="B", index=1))
    one = [Reservation(0, 0, "A", "1g.5gb", Placement(0, 1))]
    two = [Reservation(0, 0, "B", "2g.10gb", Placement(0, 2))]
    three = [Reservation(0, 0, "B", "1g.5gb", Placement(5, 1))]
    pods = [bound("a", "n1", one, **more), bound("b", "n1", two), bound("c", "n1", three)]
    return Cluster([node("n1", gpus)], pods)


def test_the_cheapest_gpu_is_emptied_and_its_pod_has_a_home() -> None:
    two_gpus().mirror()
    answer = plan_of(DrainQuestion("7g.40gb", 1))
    assert answer is not None
    assert owners(answer) == {"a"}
    ((_, uuid, place),) = answer.moves[0].homes
    assert uuid == "B"
    assert place.size == 1
    after = {change.gpu_uuid: [item.state for item in change.after] for change in answer.changes}
    assert after == {"A": [WANTED], "B": ["reserved", MOVED, "reserved"]}


def test_a_pod_that_must_stay_is_planned_around() -> None:
    two_gpus(stays=True).mirror()
    answer = plan_of(DrainQuestion("7g.40gb", 1))
    assert answer is not None
    assert owners(answer) == {"b", "c"}


def test_an_important_pod_stays_unless_asked_for() -> None:
    two_gpus(priority=500).mirror()
    assert owners(plan_of(DrainQuestion("7g.40gb", 1, 499))) == {"b", "c"}  # type: ignore[arg-type]
    assert owners(plan_of(DrainQuestion("7g.40gb", 1, 500))) == {"a"}  # type: ignore[arg-type]


def test_a_pod_that_leaves_anyway_is_waited_for_and_not_moved() -> None:
    two_gpus(deleting=True).mirror()
    answer = plan_of(DrainQuestion("7g.40gb", 1))
    assert answer is not None
    assert answer.moves == ()
    assert [claim.pod.uid for claim in answer.leaving] == ["a"]


def test_more_than_the_cluster_can_hold_has_no_plan() -> None:
    two_gpus().mirror()
    assert plan_of(DrainQuestion("7g.40gb", 3)) is None
