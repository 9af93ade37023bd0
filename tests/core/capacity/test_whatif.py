"""What is in the way of a request, against trying all sets."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from hami_web.core.housing import Housing, Tenant
from hami_web.core.request import Demand
from hami_web.core.selection import Selection
from hami_web.core.tables import ProfileTable
from hami_web.core.whatif import blockers_of_one, blockers_on_gpu, ranked, smaller_that_fits
from tests.boards import board
from tests.core.capacity.houses import A100, house, houses
from tests.core.selection.nodes import gpu, rule, wants


def fewest_by_trying(gpus: list[Housing], profile: str, stays: str = "") -> int | None:
    counts = [
        len(ended)
        for item in gpus
        if profile in item.table.by_name
        for size in range(len(item.tenants) + 1)
        for ended in combinations(item.tenants, size)
        if all(tenant.owner != stays for tenant in ended)
        and item.table.most(
            item.table.state_of(
                [(t.profile, t.placement) for t in item.tenants if t not in ended], item.blocked
            ),
            item.table.by_name[profile],
        )
    ]
    return min(counts, default=None)


@given(houses(), st.data())
def test_the_fewest_reservations_in_the_way_are_found(
    gpus: list[Housing], data: st.DataObject
) -> None:
    profile = data.draw(st.sampled_from(sorted(gpus[0].table.by_name)))
    stays = data.draw(st.sampled_from(["", "pod-1"]))
    found = blockers_of_one(
        gpus, Demand(profile=profile), may_end=lambda tenant: tenant.owner != stays
    )
    assert (None if found is None else len(found.tenants)) == fewest_by_trying(gpus, profile, stays)


def test_the_blocker_of_a_3g_is_the_one_pod_that_is_enough() -> None:
    # 2g at 0 and 1g at 5: ending the 1g frees 4..7, ending the 2g frees 0..3.
    item = house(("a", "1g.5gb", 0), ("b", "1g.5gb", 1), ("c", "1g.5gb", 5))
    found = blockers_of_one([item], Demand(profile="3g.20gb"))
    assert found is not None
    assert [tenant.owner for tenant in found.tenants] == ["c"]
    assert (found.placement and str(found.placement)) == "4:4"


def test_what_must_stay_is_not_named() -> None:
    item = house(("a", "1g.5gb", 0), ("c", "1g.5gb", 5))
    found = blockers_of_one(
        [item], Demand(profile="3g.20gb"), may_end=lambda tenant: tenant.owner != "c"
    )
    assert found is not None
    assert [tenant.owner for tenant in found.tenants] == ["a"]


def test_several_devices_are_asked_of_one_gpu_exactly() -> None:
    item = house(("a", "1g.5gb", 0), ("b", "1g.5gb", 5))
    wanted = tuple(2 if s.profile.name == "3g.20gb" else 0 for s in A100.shapes)
    found = blockers_on_gpu(item, lambda state: A100.pack(state, wanted) is not None)
    assert found is not None
    assert [tenant.owner for tenant in found.tenants] == ["a", "b"]


def test_nothing_helps_a_profile_that_no_gpu_has() -> None:
    assert blockers_of_one([house()], Demand(profile="9g.99gb")) is None
    assert blockers_of_one([], Demand(profile="3g.20gb")) is None


def test_the_largest_smaller_profile_with_a_place_is_offered() -> None:
    full = house(("a", "3g.20gb", 0), ("b", "1g.5gb", 4), uuid="GPU-1")
    fuller = house(("c", "4g.20gb", 0), ("d", "3g.20gb", 4), uuid="GPU-2")
    found = smaller_that_fits([fuller, full], Demand(memory_mib=20000))
    assert found is not None
    assert (found.profile, found.gpu_uuid, str(found.placement)) == ("1g.10gb", "GPU-1", "6:2")
    assert smaller_that_fits([fuller], Demand(memory_mib=20000)) is None


def test_nodes_are_ranked_best_first() -> None:
    nodes = {
        "empty": [gpu(0)],
        "used": [gpu(0, [("4g.20gb", 0)])],
        "full": [gpu(0, [("7g.40gb", 0)])],
    }
    found = ranked(nodes, Selection(wants("2g.10gb"), rule()))
    assert [(name, choice.reservations[0].placement.start) for name, choice in found] == [
        ("used", 4),
        ("empty", 4),
    ]


def test_a_limited_profile_is_freed_by_the_one_that_uses_it() -> None:
    table = ProfileTable(board(names=("1g.5gb", "1g.5gb+me")))
    item = house(("a", "1g.5gb+me", 0), ("b", "1g.5gb", 1), table=table)
    found = blockers_of_one([item], Demand(profile="1g.5gb+me"))
    assert found is not None
    assert found.tenants == (Tenant("a", "1g.5gb+me", table.by_name["1g.5gb+me"].placements[0]),)
