"""All devices of a Pod on one node: joint, exact, and in bounded time."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_web.core.capability import ProfileCapability
from hami_web.core.placement import Placement
from hami_web.core.policy_names import RULES
from hami_web.core.request import ContainerRequest, Demand, PodRequest
from hami_web.core.selection import Selection
from hami_web.core.tables import ProfileTable
from tests.core.selection.nodes import Gpu, choose, gpu, rule, short, wants, written

PROFILES = ("1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb")
requests = st.lists(st.sampled_from(PROFILES), min_size=1, max_size=4).map(tuple)


@st.composite
def gpus(draw: st.DrawFn, most: int = 2) -> list[Gpu]:
    """GPUs filled with some random legal instances."""
    found = []
    for index in range(draw(st.integers(1, most))):
        empty = gpu(index)
        state = 0
        for _ in range(draw(st.integers(0, 4))):
            shape = draw(st.sampled_from(empty.table.shapes))
            fits = empty.table.fits(state, shape)
            if fits:
                state = draw(st.sampled_from(fits)).state
        found.append(Gpu(empty.capability, empty.table, state))
    return found


def ways(asked: Sequence[str], cluster: Sequence[Gpu]) -> Iterator[int]:
    """The total value left by every way to place the devices, by trying all."""
    if not asked:
        yield sum(gpu.table.value(gpu.state) for gpu in cluster)
        return
    for position, item in enumerate(cluster):
        for fit in item.table.fits(item.state, item.table.by_name[asked[0]]):
            after = Gpu(item.capability, item.table, fit.state)
            yield from ways(asked[1:], [*cluster[:position], after, *cluster[position + 1 :]])


@given(requests, gpus())
def test_a_plan_exists_exactly_when_trying_everything_finds_one(
    asked: tuple[str, ...], cluster: list[Gpu]
) -> None:
    exists = next(ways(asked, cluster), None) is not None
    for policy in RULES:
        assert (choose(wants(*asked), cluster, policy) is not None) == exists


@given(requests, gpus())
def test_cap_loss_keeps_the_most_value_over_all_ways(
    asked: tuple[str, ...], cluster: list[Gpu]
) -> None:
    choice = choose(wants(*asked), cluster)
    if choice is not None:
        assert left(choice.reservations, cluster) == max(ways(asked, cluster))


def left(reservations: Sequence[object], cluster: Sequence[Gpu]) -> int:
    total = 0
    for item in cluster:
        state = item.state
        for r in reservations:
            if r.gpu_uuid == item.capability.uuid:  # type: ignore[attr-defined]
                shape = item.table.by_name[r.profile]  # type: ignore[attr-defined]
                state = item.table.taking(state, shape, r.placement)  # type: ignore[attr-defined]
        total += item.table.value(state)
    return total


@given(requests, gpus(), st.sampled_from(RULES))
def test_plans_are_legal_disjoint_and_complete(
    asked: tuple[str, ...], cluster: list[Gpu], policy: str
) -> None:
    choice = choose(wants(*asked), cluster, policy)
    if choice is None:
        return
    states = {item.capability.uuid: item.state for item in cluster}
    by_uuid = {item.capability.uuid: item for item in cluster}
    for r in choice.reservations:
        assert r.placement in by_uuid[r.gpu_uuid].table.by_name[r.profile].placements
        assert not states[r.gpu_uuid] & r.placement.mask
        states[r.gpu_uuid] |= r.placement.mask
    assert [r.profile for r in choice.reservations] == list(asked)
    assert [r.key for r in choice.reservations] == [(n, 0) for n in range(len(asked))]


@given(requests, gpus(), st.sampled_from(RULES), st.randoms())
def test_the_order_of_asking_does_not_matter(
    asked: tuple[str, ...], cluster: list[Gpu], policy: str, random: object
) -> None:
    turned = list(asked)
    random.shuffle(turned)  # type: ignore[attr-defined]
    first, second = (choose(wants(*order), cluster, policy) for order in (asked, turned))
    assert (first and short(first)) == (second and short(second))


@given(requests, gpus(), st.sampled_from(RULES), st.data())
def test_freeing_memory_slices_never_makes_a_fitting_request_unfit(
    asked: tuple[str, ...], cluster: list[Gpu], policy: str, data: st.DataObject
) -> None:
    if choose(wants(*asked), cluster, policy) is None:
        return
    freed = [
        Gpu(item.capability, item.table, item.state & data.draw(st.integers(0, 255)))
        for item in cluster
    ]
    assert choose(wants(*asked), freed, policy) is not None


@pytest.mark.parametrize("asked", list(permutations(("4g.20gb", "2g.10gb", "1g.5gb"))))
def test_4g_2g_and_1g_go_together_on_one_gpu_in_any_order(asked: tuple[str, ...]) -> None:
    choice = choose(wants(*asked), [gpu(0), gpu(1, [("7g.40gb", 0)])])
    assert short(choice) == ["0:1g.5gb@6", "0:2g.10gb@4", "0:4g.20gb@0"]


def test_several_devices_of_a_container_may_share_a_gpu() -> None:
    assert written(choose(wants(("1g.5gb", 2)), [gpu()])) == [
        "c0d0 GPU-0 1g.5gb@4",
        "c0d1 GPU-0 1g.5gb@5",
    ]


def test_spread_uses_as_many_gpus_as_there_are() -> None:
    choice = choose(wants(("1g.5gb", 4)), [gpu(n) for n in range(8)], "spread")
    assert [line.split()[1] for line in written(choice)] == ["GPU-0", "GPU-1", "GPU-2", "GPU-3"]


def test_binpack_fills_one_gpu_first() -> None:
    cluster = [gpu(0), gpu(1, [("1g.5gb", 6)]), gpu(2)]
    choice = choose(wants(("1g.5gb", 6)), cluster, "binpack")
    assert {line.split()[1] for line in written(choice)} == {"GPU-1"}


def test_first_fit_takes_the_first_gpu_and_the_lowest_start() -> None:
    cluster = [gpu(0, [("1g.5gb", 0)]), gpu(1)]
    assert short(choose(wants("1g.5gb", "7g.40gb"), cluster, "first-fit")) == [
        "0:1g.5gb@1",
        "1:7g.40gb@0",
    ]


def test_a_large_device_does_not_lose_its_gpu_to_a_small_one() -> None:
    choice = choose(wants("7g.40gb", "1g.5gb"), [gpu(0), gpu(1)])
    assert short(choice) == ["0:7g.40gb@0", "1:1g.5gb@6"] or short(choice) == [
        "0:1g.5gb@6",
        "1:7g.40gb@0",
    ]


def test_numa_binding_keeps_the_devices_of_a_container_together() -> None:
    cluster = [
        gpu(0, [("4g.20gb", 0)], numa=0),
        gpu(1, [("7g.40gb", 0)], numa=0),
        gpu(2, numa=1),
        gpu(3, [("7g.40gb", 0)], numa=1),
    ]
    choice = choose(wants(("3g.20gb", 2), "3g.20gb", numa_bind=True), cluster)
    assert written(choice) == [
        "c0d0 GPU-2 3g.20gb@0",
        "c0d1 GPU-2 3g.20gb@4",
        "c1d0 GPU-0 3g.20gb@4",
    ]


def test_numa_binding_is_refused_where_no_node_of_memory_holds_a_container() -> None:
    cluster = [gpu(0, numa=0), gpu(1, numa=1)]
    assert choose(wants(("7g.40gb", 2), numa_bind=True), cluster) is None
    assert choose(wants(("7g.40gb", 2)), cluster) is not None


@pytest.mark.parametrize("count", [2, 4, 6, 8, 20, 56])
def test_planning_many_devices_stays_cheap(count: int) -> None:
    cluster = [gpu(n) for n in range(8)]
    selection = Selection(wants(("1g.5gb", count)), rule())
    began = time.perf_counter()
    assert selection.choose(cluster) is not None
    assert time.perf_counter() - began < 0.5


def test_planning_many_devices_of_many_kinds_stays_cheap() -> None:
    cluster = [gpu(n) for n in range(16)]
    selection = Selection(
        wants(("1g.5gb", 16), ("1g.10gb", 8), ("2g.10gb", 8), ("3g.20gb", 6), ("4g.20gb", 4)),
        rule(),
    )
    began = time.perf_counter()
    assert selection.choose(cluster) is not None
    assert time.perf_counter() - began < 1


@given(requests.filter(lambda asked: len(asked) > 1), gpus())
def test_the_number_that_fits_is_the_largest(asked: tuple[str, ...], cluster: list[Gpu]) -> None:
    found = Selection(wants(*asked), rule()).found(cluster)
    assert found == max(
        (
            len(part)
            for mask in range(1 << len(asked))
            if (part := [name for n, name in enumerate(asked) if mask >> n & 1])
            and next(ways(part, cluster), None) is not None
        ),
        default=0,
    )


def uneven(index: int, state: int = 0) -> Gpu:
    """A GPU whose larger profile has a place where the smaller one has none."""
    small = ProfileCapability("small", 5000, 20, 1, (Placement(0, 1),))
    large = ProfileCapability("large", 10000, 40, 2, (Placement(2, 2),))
    capability = dataclasses.replace(
        gpu(index).capability, profiles=(large, small), memory_mib=20000
    )
    return Gpu(capability, ProfileTable(capability), state)


ASKS_4000_MIB = PodRequest(1, (ContainerRequest(0, "c0", 1, Demand(memory_mib=4000)),))


def test_without_upsizing_only_the_smallest_profile_will_do() -> None:
    assert short(choose(ASKS_4000_MIB, [uneven(0)])) == ["0:small@0"]
    assert choose(ASKS_4000_MIB, [uneven(0, state=1)]) is None


def test_upsizing_takes_the_next_larger_profile_where_the_smallest_has_no_place() -> None:
    full = uneven(0, state=1)
    assert short(choose(ASKS_4000_MIB, [full], upsize=True)) == ["0:large@2"]
    assert short(choose(ASKS_4000_MIB, [full, uneven(1)], upsize=True)) == ["1:small@0"]


def test_upsizing_plans_several_devices_together() -> None:
    two = PodRequest(1, (ContainerRequest(0, "c0", 2, Demand(memory_mib=4000)),))
    assert short(choose(two, [uneven(0)], upsize=True)) == ["0:large@2", "0:small@0"]
