"""Drain plans against trying all sets of Pods."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_web.core.drain import plan_drain
from hami_web.core.housing import Housing
from tests.core.capacity.houses import house, houses


def room(gpus: list[Housing], profile: str, moved: tuple[str, ...] = ()) -> int:
    return sum(
        gpu.table.most(gpu.state_without(moved), gpu.table.by_name[profile])
        for gpu in gpus
        if profile in gpu.table.by_name
    )


def best_by_trying(
    gpus: list[Housing], profile: str, wanted: int, fixed: str
) -> tuple[int, int] | None:
    priorities = {t.owner: t.priority for gpu in gpus for t in gpu.tenants}
    movable = sorted(set(priorities) - {fixed})
    costs = [
        (len(moved), sum(priorities[owner] for owner in moved))
        for size in range(len(movable) + 1)
        for moved in combinations(movable, size)
        if room(gpus, profile, moved) >= wanted
    ]
    return min(costs, default=None)


@given(houses(), st.data())
def test_a_plan_moves_the_fewest_pods_of_the_least_priority(
    gpus: list[Housing], data: st.DataObject
) -> None:
    profile = data.draw(st.sampled_from(sorted(gpus[0].table.by_name)))
    wanted = data.draw(st.integers(0, 5))
    fixed = data.draw(st.sampled_from(["", "pod-1", "pod-2"]))
    plan = plan_drain(gpus, profile, wanted, may_move=lambda tenant: tenant.owner != fixed)
    best = best_by_trying(gpus, profile, wanted, fixed)
    if plan is None:
        assert best is None
        return
    priorities = {t.owner: t.priority for gpu in gpus for t in gpu.tenants}
    assert plan.exact
    assert (len(plan.owners), sum(priorities[o] for o in plan.owners)) == best
    assert fixed not in plan.owners


@given(houses(), st.data())
def test_the_promised_placements_are_free_and_legal(
    gpus: list[Housing], data: st.DataObject
) -> None:
    profile = data.draw(st.sampled_from(sorted(gpus[0].table.by_name)))
    wanted = data.draw(st.integers(0, 4))
    plan = plan_drain(gpus, profile, wanted)
    if plan is None:
        return
    assert len(plan.placements) == wanted
    states = {gpu.gpu_uuid: gpu.state_without(plan.owners) for gpu in gpus}
    tables = {gpu.gpu_uuid: gpu.table for gpu in gpus}
    placed = [*plan.placements, *(home for homes in plan.homes.values() for home in homes)]
    for _, uuid, placement in placed:
        assert not states[uuid] & placement.mask
        states[uuid] |= placement.mask
    for _, uuid, placement in plan.placements:
        assert placement in tables[uuid].by_name[profile].placements
    assert set(plan.homes) | set(plan.homeless) == set(plan.owners)


def test_one_pod_is_enough_where_one_is() -> None:
    gpus = [
        house(("a", "1g.5gb", 6), uuid="GPU-0"),
        house(("b", "3g.20gb", 0), ("c", "1g.5gb", 4), uuid="GPU-1"),
    ]
    plan = plan_drain(gpus, "7g.40gb", 1)
    assert plan is not None
    assert plan.owners == ("a",)
    assert plan.placements[0][1] == "GPU-0"
    assert [home[1] for home in plan.homes["a"]] == ["GPU-1"]
    assert plan.homeless == ()


def test_a_pod_on_two_gpus_counts_once() -> None:
    gpus = [
        house(("both", "1g.5gb", 6), uuid="GPU-0"),
        house(("both", "1g.5gb", 6), uuid="GPU-1"),
        house(("one", "1g.5gb", 6), uuid="GPU-2"),
        house(("two", "1g.5gb", 6), uuid="GPU-3"),
    ]
    plan = plan_drain(gpus, "7g.40gb", 2)
    assert plan is not None
    assert plan.owners == ("both",)


def test_nothing_moves_for_what_is_free() -> None:
    plan = plan_drain([house(("a", "1g.5gb", 6))], "3g.20gb", 1)
    assert plan is not None
    assert plan.owners == ()


@pytest.mark.parametrize("wanted", [2, 3])
def test_more_than_the_gpus_hold_has_no_plan(wanted: int) -> None:
    assert plan_drain([house(("a", "1g.5gb", 6))], "7g.40gb", wanted) is None


def test_a_large_cluster_is_planned_quickly() -> None:
    gpus = [
        house((f"a{n}", "1g.5gb", 6), (f"b{n}", "2g.10gb", 4), uuid=f"GPU-{n}") for n in range(500)
    ]
    plan = plan_drain(gpus, "7g.40gb", 20)
    assert plan is not None
    assert len(plan.owners) == 40
