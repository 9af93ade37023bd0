"""The tables of a GPU model against exhaustive search over its placements."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_web.core.capability import ProfileCapability
from hami_web.core.placement import Placement
from hami_web.core.shapes import Shape
from hami_web.core.tables import ProfileTable, TableStore
from tests.boards import ALLOWED_A100, board

MODELS = ("a100-sxm4-40gb", "a30", "h100-sxm5-80gb", "h200-sxm-141gb", "rtx-pro-6000-se")


def layouts(table: ProfileTable) -> set[frozenset[tuple[str, Placement]]]:
    """Every set of disjoint instances, by growing the empty one."""
    found = {frozenset[tuple[str, Placement]]()}
    border = list(found)
    while border:
        layout = border.pop()
        taken = sum(placement.mask for _, placement in layout)
        for shape in table.shapes:
            for placement in shape.placements:
                grown = layout | {(shape.profile.name, placement)}
                if not placement.mask & taken and grown not in found:
                    found.add(grown)
                    border.append(grown)
    return found


def most_by_trying(shape: Shape, taken: int) -> int:
    free = [mask for mask in shape.masks if not mask & taken]
    for count in range(len(free), 0, -1):
        for chosen in combinations(free, count):
            if sum(mask.bit_count() for mask in chosen) == union(chosen).bit_count():
                return count
    return 0


def union(masks: tuple[int, ...]) -> int:
    mask = 0
    for item in masks:
        mask |= item
    return mask


@pytest.mark.parametrize(
    ("key", "names", "count", "masks"),
    [
        ("a100-sxm4-40gb", None, 723, 192),
        ("a100-sxm4-40gb", ALLOWED_A100, 287, 144),
        ("a30", None, 26, 16),
    ],
)
def test_the_number_of_layouts_is_the_published_one(
    key: str, names: tuple[str, ...] | None, count: int, masks: int
) -> None:
    table = ProfileTable(board(key, names=names))
    found = layouts(table)
    assert len(found) == count
    assert len({table.state_of(layout) & table.slice_mask for layout in found}) == masks


@pytest.mark.parametrize("key", MODELS)
def test_headroom_of_every_layout_equals_exhaustive_search(key: str) -> None:
    table = ProfileTable(board(key))
    states = {table.state_of(layout) for layout in layouts(table)}
    for state, shape in product(states, table.shapes):
        assert table.most(state, shape) == most_by_trying(shape, state)


@pytest.mark.parametrize("key", MODELS)
def test_fits_are_exactly_the_legal_free_placements(key: str) -> None:
    table = ProfileTable(board(key))
    for state in {table.state_of(layout) for layout in layouts(table)}:
        for shape in table.shapes:
            found = {fit.placement for fit in table.fits(state, shape)}
            assert found == {p for p in shape.placements if not p.mask & state}


def test_room_is_the_sum_of_memory_slices_each_profile_could_still_get() -> None:
    table = ProfileTable(board(names=ALLOWED_A100))
    # 7 x 1 of 1g, 3 x 2 of 2g, 2 x 4 of 3g, 1 x 8 of 7g
    assert table.room(0) == 7 + 6 + 8 + 8
    # with slice 6 taken: 6 x 1g, 3 x 2g, 1 x 3g
    assert table.room(1 << 6) == 6 + 6 + 4


def test_value_adds_a_twentieth_of_what_the_end_of_each_instance_would_free() -> None:
    table = ProfileTable(board(names=ALLOWED_A100))
    one = table.state_of([("1g.5gb", Placement(6, 1))])
    assert table.value(one) == 20 * 16 + (29 - 16)
    # Two 1g at 4 and 5: 5 x 1g, 2 x 2g, 1 x 3g are left; without either of them one 1g more.
    two = table.state_of([("1g.5gb", Placement(4, 1)), ("1g.5gb", Placement(5, 1))])
    assert table.value(two) == 20 * 13 + 2 * (6 + 4 + 4 - 13)
    # One 2g there takes the same slices, but its end frees all.
    wide = table.state_of([("2g.10gb", Placement(4, 2))])
    assert table.value(wide) == 20 * 13 + (29 - 13)


@pytest.mark.parametrize(
    ("name", "start"),
    [("1g.5gb", 6), ("1g.10gb", 6), ("2g.10gb", 4), ("3g.20gb", 4), ("4g.20gb", 0)],
)
def test_the_first_instance_keeps_the_largest_futures_open(name: str, start: int) -> None:
    table = ProfileTable(board())
    best = table.best(0, table.by_name[name])
    assert best is not None
    assert best.placement.start == start


def multisets(shapes: int, most: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*[st.integers(0, most)] * shapes)


@given(st.sampled_from(MODELS), st.data())
def test_a_packing_exists_exactly_when_some_layout_has_it(key: str, data: st.DataObject) -> None:
    table = ProfileTable(board(key))
    wanted = data.draw(multisets(len(table.shapes), 3))
    packing = table.pack(0, wanted)
    names = sorted(
        name
        for shape, count in zip(table.shapes, wanted, strict=True)
        for name in [shape.profile.name] * count
    )
    exists = any(sorted(name for name, _ in layout) == names for layout in layouts(table))
    assert (packing is not None) == exists


def test_a_packing_leaves_the_most_value() -> None:
    table = ProfileTable(board())
    for wanted in product(range(3), repeat=len(table.shapes)):
        packing = table.pack(0, wanted)
        if packing is None or not any(wanted):
            continue
        names = sorted(table.shapes[index].profile.name for index, _ in packing.placed)
        best = max(
            table.value(table.state_of(layout))
            for layout in layouts(table)
            if sorted(name for name, _ in layout) == names
        )
        assert table.value(packing.state) == best


def test_an_instance_limit_holds() -> None:
    table = ProfileTable(board(names=("1g.5gb", "1g.5gb+me")))
    special = table.by_name["1g.5gb+me"]
    (first, *_) = table.fits(0, special)
    assert table.most(0, special) == 1
    assert table.fits(first.state, special) == ()
    assert table.most(first.state, table.by_name["1g.5gb"]) == 6


def test_all_media_engines_leave_room_only_for_profiles_without() -> None:
    names = ("1g.24gb", "1g.24gb+me", "1g.24gb+me.all", "1g.24gb-me")
    table = ProfileTable(board("rtx-pro-6000-se", names=names))
    state = table.fits(0, table.by_name["1g.24gb+me.all"])[0].state
    assert [name for name in names if table.most(state, table.by_name[name])] == ["1g.24gb-me"]


def test_all_media_engines_need_that_no_instance_uses_any() -> None:
    names = ("1g.24gb", "1g.24gb+me.all", "1g.24gb-me")
    table = ProfileTable(board("rtx-pro-6000-se", names=names))
    plain = table.fits(0, table.by_name["1g.24gb"])[0].state
    bare = table.fits(0, table.by_name["1g.24gb-me"])[0].state
    assert table.most(plain, table.by_name["1g.24gb+me.all"]) == 0
    assert table.most(bare, table.by_name["1g.24gb+me.all"]) == 1


def test_one_optical_flow_engine_serves_one_extended_instance() -> None:
    table = ProfileTable(board("a30", names=("1g.6gb+me", "2g.12gb+me")))
    state = table.fits(0, table.by_name["1g.6gb+me"])[0].state
    assert table.most(state, table.by_name["2g.12gb+me"]) == 0


def test_a_profile_no_longer_published_still_takes_its_memory_slices() -> None:
    table = ProfileTable(board(names=ALLOWED_A100))
    assert table.state_of([("4g.20gb", Placement(0, 4))]) & table.slice_mask == 0b1111


def test_equal_capability_shares_one_table_in_any_order() -> None:
    store = TableStore()
    gpu = board()
    other = board(uuid="GPU-1", index=3)
    turned = type(other)(**{**_fields(other), "profiles": tuple(reversed(other.profiles))})
    assert store.table_for(gpu) is store.table_for(turned)
    assert store.table_for(board("a30")) is not store.table_for(gpu)
    assert len(store) == 2


def test_a_huge_grid_is_answered_without_a_table_of_all_masks() -> None:
    wide = ProfileCapability("w", 1000, 1, 1, tuple(Placement(n, 1) for n in range(1000)))
    gpu = board()
    table = ProfileTable(type(gpu)(**{**_fields(gpu), "profiles": (wide,)}))
    assert table.most(0, table.shapes[0]) == 1000
    assert table.best((1 << 999) - 1, table.shapes[0]).placement == Placement(999, 1)  # type: ignore[union-attr]


def _fields(gpu: object) -> dict[str, object]:
    names = type(gpu).__dataclass_fields__  # type: ignore[attr-defined]
    return {name: getattr(gpu, name) for name in names}
