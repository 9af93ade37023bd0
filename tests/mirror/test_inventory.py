"""Nodes and GPUs that come, change, cannot be read, and go."""

from __future__ import annotations

import pytest

from hami_web.core.blocked import BlockedInterval
from hami_web.core.placement import Placement
from hami_web.inventory.mirror import forget_nodes, mirror_nodes
from hami_web.inventory.models import LIVE, Gpu, Node, ProfileSet
from hami_web.inventory.observed import ObservedNode

from .observations import GPUS, gpu, moment, node

pytestmark = pytest.mark.django_db


def see(seconds: float, *nodes, complete: bool = False):
    return mirror_nodes(nodes, seen_at=moment(seconds), now=moment(seconds), complete=complete)


def live() -> list[str]:
    return list(Gpu.objects.filter(LIVE).values_list("uuid", flat=True))


def test_equal_profiles_of_many_gpus_are_stored_once() -> None:
    see(1, node("n1", (gpu(GPUS[0]), gpu(GPUS[1], index=1))), node("n2", (gpu(GPUS[2]),)))
    assert ProfileSet.objects.count() == 1
    assert Gpu.objects.first().profile_set.profiles.count() == 4


def test_a_gpu_that_moved_has_another_node_and_the_same_row() -> None:
    see(1, node("n1"))
    before = Gpu.objects.get().pk
    see(2, node("n1", ()), node("n2"))
    assert (Gpu.objects.get().pk, Gpu.objects.get().node.name, live()) == (before, "n2", [GPUS[0]])


def test_gpus_of_an_unreadable_node_stay_as_known() -> None:
    see(1, node())
    see(2, ObservedNode("n1", None, closed="node unregistered", doubts=("not JSON",)))
    assert live() == [GPUS[0]]
    assert Node.objects.get().doubts == ["not JSON"]


def test_a_gpu_whose_entry_is_refused_stays_and_is_closed() -> None:
    see(1, node())
    see(2, node("n1", (), refused=(GPUS[0],)))
    assert (live(), Gpu.objects.get().closed) == ([GPUS[0]], "CardMigCapabilityInvalid")


def test_a_deleted_node_is_gone_with_its_gpus_and_comes_back() -> None:
    see(1, node())
    forget_nodes(["n1"], seen_at=moment(2), now=moment(2))
    assert (live(), Node.objects.get().gone_at) == ([], moment(2))
    see(3, node())
    assert (live(), Node.objects.get().gone_at) == ([GPUS[0]], None)


def test_an_older_list_does_not_undo_what_was_seen_since() -> None:
    see(10, node())
    mirror_nodes([], seen_at=moment(5), now=moment(11), complete=True)
    assert live() == [GPUS[0]]


def test_blocked_memory_slices_follow_the_agent() -> None:
    blocked = (BlockedInterval(GPUS[0], Placement(2, 2), "foreign \0 instance"),)
    see(1, node("n1", (gpu(blocked=blocked),)))
    assert Gpu.objects.get().blocked.get().reason == "foreign \N{REPLACEMENT CHARACTER} instance"
    see(2, node())
    assert not Gpu.objects.get().blocked.exists()
