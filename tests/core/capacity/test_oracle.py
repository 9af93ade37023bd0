"""The capacity oracle against brute force, and its facets against the published ones."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hami_web.core.oracle import CapacityOracle, Counts
from hami_web.core.tables import ProfileTable
from tests.boards import ALLOWED_A100, board

CASES = {
    "a100": ("a100-sxm4-40gb", None),
    "a100 allowed": ("a100-sxm4-40gb", ALLOWED_A100),
    "a30": ("a30", None),
    "a30 special": ("a30", ("1g.6gb", "1g.6gb+me", "2g.12gb", "2g.12gb+me", "4g.24gb")),
    "h100": ("h100-sxm5-80gb", None),
    "rtx": ("rtx-pro-6000-se", None),
    "rtx special": (
        "rtx-pro-6000-se",
        ("1g.24gb", "1g.24gb-me", "1g.24gb+me", "1g.24gb+me.all", "2g.48gb", "4g.96gb"),
    ),
}


@cache
def table(case: str) -> ProfileTable:
    key, names = CASES[case]
    return ProfileTable(board(key, names=names))


@cache
def oracle(case: str) -> CapacityOracle:
    return CapacityOracle(table(case))


@cache
def multisets(case: str) -> frozenset[Counts]:
    """What one GPU can hold, by growing every layout."""
    found: set[Counts] = set()
    seen: set[tuple[int, Counts]] = set()
    border: list[tuple[int, Counts]] = [(0, (0,) * len(table(case).shapes))]
    while border:
        state, counts = border.pop()
        if (state, counts) in seen:
            continue
        seen.add((state, counts))
        found.add(counts)
        for shape in table(case).shapes:
            grown = tuple(n + (i == shape.index) for i, n in enumerate(counts))
            border.extend((fit.state, grown) for fit in table(case).fits(state, shape))
    return frozenset(found)


@cache
def sums(case: str, gpus: int) -> frozenset[Counts]:
    """What so many GPUs can hold together."""
    if gpus == 1:
        return multisets(case)
    return frozenset(
        tuple(map(sum, zip(a, b, strict=True)))
        for a, b in product(sums(case, gpus - 1), multisets(case))
    )


def near(case: str, gpus: int) -> set[Counts]:
    """Everything that fits, and everything one instance beyond."""
    inside = sums(case, gpus)
    shapes = len(table(case).shapes)
    beyond = {tuple(n + (i == k) for i, n in enumerate(c)) for c in inside for k in range(shapes)}
    return inside | beyond


@pytest.mark.parametrize("case", CASES)
def test_one_gpu_holds_exactly_what_brute_force_finds(case: str) -> None:
    for counts in near(case, 1):
        assert oracle(case).fits(counts, 1) == (counts in sums(case, 1))


@pytest.mark.parametrize("case", ["a100 allowed", "a30", "a30 special", "rtx", "rtx special"])
def test_two_gpus_hold_exactly_what_brute_force_finds(case: str) -> None:
    for counts in near(case, 2):
        assert oracle(case).fits(counts, 2) == (counts in sums(case, 2))


@pytest.mark.slow
def test_two_a100s_hold_exactly_what_brute_force_finds() -> None:
    inside = sums("a100", 2)
    for counts in near("a100", 2):
        assert oracle("a100").within(counts, 2) == (counts in inside)


@pytest.mark.parametrize("case", ["a30", "rtx"])
def test_three_gpus_hold_exactly_what_brute_force_finds(case: str) -> None:
    for counts in near(case, 3):
        assert oracle(case).fits(counts, 3) == (counts in sums(case, 3))


def test_the_facets_of_an_a100_are_the_published_four() -> None:
    found = {(facet.weights, facet.bound) for facet in oracle("a100").facets}
    assert found == {
        ((0, 0, 0, 0, 1, 1), 1),
        ((0, 0, 1, 1, 2, 3), 3),
        ((1, 2, 2, 4, 4, 8), 8),
        ((1, 1, 2, 3, 4, 7), 7),
    }


@given(st.lists(st.integers(0, 40), min_size=6, max_size=6), st.integers(1, 30))
@settings(max_examples=100)
def test_an_arrangement_is_a_proof(counts: list[int], gpus: int) -> None:
    found = oracle("a100").arrangement(counts, gpus)
    assert (found is not None) == oracle("a100").within(counts, gpus)
    if found is not None:
        assert len(found) == gpus
        assert [sum(column) for column in zip(*found, strict=True)] == counts
        assert all(multiset in multisets("a100") for multiset in found)


def test_a_model_without_profiles_holds_nothing_but_nothing() -> None:
    empty = CapacityOracle(ProfileTable(board(names=())))
    assert empty.fits((), 3)
