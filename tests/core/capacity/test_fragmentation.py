"""The definition of fragmentation, and what follows from it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_web.core.fragmentation import fragmentation
from hami_web.core.tables import ProfileTable
from tests.boards import ALLOWED_A100, board

MODELS = {key: ProfileTable(board(key)) for key in ("a100-sxm4-40gb", "a30", "rtx-pro-6000-se")}
ALLOWED = ProfileTable(board(names=ALLOWED_A100))


@st.composite
def scopes(draw: st.DrawFn) -> list[tuple[ProfileTable, int]]:
    tables = st.sampled_from(list(MODELS.values()))
    return [
        (table, draw(st.integers(0, table.slice_mask)))
        for table in draw(st.lists(tables, min_size=1, max_size=5))
    ]


def rooms(scope: list[tuple[ProfileTable, int]]) -> dict[str, tuple[int, int]]:
    return {room.profile: (room.now, room.packed) for room in fragmentation(scope).rooms}


def test_a_hand_worked_gpu() -> None:
    # Slices 0, 1 and 5 are taken: five are free, but no four in a legal place.
    scope = [(ALLOWED, 0b100011)]
    assert rooms(scope) == {
        "1g.5gb": (4, 5),
        "2g.10gb": (1, 2),
        "3g.20gb": (0, 1),
        "7g.40gb": (0, 0),
    }
    lost = 1 * 4864 + 1 * 9984 + 1 * 20096
    packed = 5 * 4864 + 2 * 9984 + 1 * 20096
    assert fragmentation(scope).value == pytest.approx(lost / packed)


def test_between_gpus_too_whole_gpus_are_lost() -> None:
    # One slice taken on each of eight GPUs: packed, seven of them would be empty.
    assert rooms([(ALLOWED, 1 << 6)] * 8)["7g.40gb"] == (0, 7)
    assert rooms([(ALLOWED, 0)] * 7 + [(ALLOWED, 0xFF)])["7g.40gb"] == (7, 7)


@given(scopes())
def test_it_is_a_share(scope: list[tuple[ProfileTable, int]]) -> None:
    assert 0 <= fragmentation(scope).value <= 1


@given(scopes())
def test_no_profile_has_more_room_than_packed(scope: list[tuple[ProfileTable, int]]) -> None:
    assert all(room.now <= room.packed for room in fragmentation(scope).rooms)


@given(scopes(), st.booleans())
def test_empty_and_full_scopes_have_none(scope: list[tuple[ProfileTable, int]], full: bool) -> None:
    same = [(table, table.slice_mask if full else 0) for table, _ in scope]
    assert fragmentation(same).value == 0


@given(scopes(), st.randoms())
def test_the_order_of_gpus_does_not_matter(
    scope: list[tuple[ProfileTable, int]], random: object
) -> None:
    turned = list(scope)
    random.shuffle(turned)  # type: ignore[attr-defined]
    assert fragmentation(turned) == fragmentation(scope)


@given(scopes())
def test_a_wider_scope_packs_at_least_as_well(scope: list[tuple[ProfileTable, int]]) -> None:
    whole = rooms(scope)
    for name, (now, packed) in whole.items():
        parts = [rooms([one]).get(name, (0, 0)) for one in scope]
        assert now == sum(part[0] for part in parts)
        assert packed >= sum(part[1] for part in parts)


def test_nothing_has_no_fragmentation() -> None:
    assert fragmentation([]).value == 0
    assert fragmentation([(ProfileTable(board(names=())), 0)]).rooms == ()


def test_special_profiles_do_not_count_twice() -> None:
    table = ProfileTable(board(names=("1g.5gb", "1g.5gb+me")))
    assert [room.profile for room in fragmentation([(table, 0)]).rooms] == ["1g.5gb"]
