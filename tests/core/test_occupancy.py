"""Placements, occupancy and headroom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_web.core.errors import InvalidField
from hami_web.core.occupancy import Occupancy, headroom
from hami_web.core.placement import Placement
from tests.builders import a100_40gb

placements = st.builds(Placement, st.integers(0, 11), st.integers(1, 12))


@given(placements, placements)
def test_placements_overlap_exactly_when_their_masks_do(a: Placement, b: Placement) -> None:
    shared = set(range(a.start, a.end)) & set(range(b.start, b.end))
    assert a.overlaps(b) == b.overlaps(a) == bool(shared) == bool(a.mask & b.mask)


@pytest.mark.parametrize(("start", "size"), [(-1, 1), (0, 0), (0, -1)])
def test_a_placement_outside_the_axis_cannot_exist(start: int, size: int) -> None:
    with pytest.raises(InvalidField, match="placement"):
        Placement(start, size)


@given(st.lists(placements), placements)
def test_a_taken_placement_is_never_admitted_again(taken: list[Placement], one: Placement) -> None:
    occupancy = Occupancy.of(taken)
    assert occupancy.admits(one) == (not any(one.overlaps(other) for other in taken))
    assert not occupancy.with_placement(one).admits(one)


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        ((), [7, 3, 2, 1]),
        ((Placement(4, 4),), [4, 2, 1, 0]),
        ((Placement(4, 4), Placement(0, 2)), [2, 1, 0, 0]),
        ((Placement(0, 8),), [0, 0, 0, 0]),
        ((Placement(0, 1), Placement(1, 1), Placement(5, 1)), [4, 1, 0, 0]),
    ],
)
def test_headroom_counts_what_still_fits(taken: tuple[Placement, ...], expected: list[int]) -> None:
    occupancy = Occupancy.of(taken)
    assert [headroom(p, occupancy) for p in a100_40gb().profiles] == expected


def test_free_memory_slices_are_counted_on_the_gpus_own_grid() -> None:
    assert Occupancy.of([Placement(0, 3)]).free_memory_slices(a100_40gb().grid) == 5
