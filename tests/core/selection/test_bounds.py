"""Edges of planning: absurd counts, many kinds, many containers, and words only HAMi knows."""

from __future__ import annotations

import time

import pytest

from hami_web.core.housing import Housing
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.reasons import Reason
from hami_web.core.request import ContainerRequest, Demand, PodRequest
from hami_web.core.selection import Selection
from hami_web.core.whatif import blockers_on_gpu
from tests.core.capacity.houses import house
from tests.core.selection.nodes import choose, gpu, rule, wants

EMPTY = [gpu(n) for n in range(8)]
FIVE_KINDS = wants(("1g.5gb", 9), ("1g.10gb", 9), ("2g.10gb", 9), ("3g.20gb", 9), ("4g.20gb", 9))


@pytest.mark.parametrize("count", [57, 1024, 5000])
def test_more_devices_than_a_node_has_are_refused_at_once(count: int) -> None:
    selection = Selection(wants(("1g.5gb", count)), rule())
    began = time.perf_counter()
    assert selection.choose(EMPTY) is None
    assert selection.found(EMPTY) == 56
    assert time.perf_counter() - began < 0.5


def test_of_too_many_kinds_at_least_one_kind_is_counted() -> None:
    selection = Selection(FIVE_KINDS, rule())
    assert selection.choose(EMPTY) is None
    assert 8 <= selection.found(EMPTY) <= 45


def test_kinds_planned_in_turn_can_fail_at_the_last() -> None:
    asked = wants(("7g.40gb", 8), ("1g.5gb", 40), ("2g.10gb", 20), ("1g.10gb", 20))
    assert choose(asked, EMPTY) is None


def test_many_bound_containers_share_one_numa_node() -> None:
    cluster = [gpu(0, numa=0), gpu(1, numa=1), gpu(2, [("1g.5gb", 6)], numa=1)]
    choice = choose(wants(*["1g.5gb"] * 7, numa_bind=True), cluster)
    assert choice is not None
    numa = {item.capability.uuid: item.capability.numa for item in cluster}
    assert len({numa[r.gpu_uuid] for r in choice.reservations}) == 1


def test_hamis_walk_counts_what_it_placed_before_it_gave_up() -> None:
    hami = SchedulingPolicy("hami").rule_for(PodRequest(0, ()))
    assert Selection(wants(("3g.20gb", 5)), hami).found([gpu(0), gpu(1)]) == 4


def test_an_exclusive_gpu_that_is_used_says_so() -> None:
    request = PodRequest(1, wants("1g.5gb").containers, gpu_policy="mutex")
    exclusive = Selection(request, SchedulingPolicy("hami").rule_for(request))
    assert exclusive.explain(gpu(0, [("1g.5gb", 6)])) is Reason.EXCLUSIVE
    assert exclusive.explain(gpu(0)) is None


@pytest.mark.parametrize(
    ("demand", "reason"),
    [
        (Demand(memory_mib=4000, core_percent=16), None),
        (Demand(profile="1g.5gb", core_percent=50), Reason.INSUFFICIENT_CORES),
        (Demand(memory_mib=50000), Reason.INSUFFICIENT_MEMORY),
        (Demand(profile="9g.90gb"), Reason.UNKNOWN_PROFILE),
    ],
)
def test_a_demand_that_no_profile_meets_says_what_is_short(
    demand: Demand, reason: Reason | None
) -> None:
    request = PodRequest(1, (ContainerRequest(0, "c0", 1, demand),))
    assert Selection(request, rule()).explain(gpu(0)) is reason


def test_nothing_helps_where_nothing_may_end() -> None:
    item: Housing = house(("a", "7g.40gb", 0))
    never = blockers_on_gpu(item, lambda state: not state, may_end=lambda _tenant: False)
    assert never is None
