"""The baselines on cases worked by hand, and the simulated product against the real one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

import pytest

from hami_web.core.oracle import CapacityOracle
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.tables import ProfileTable
from hami_web.scheduling.state import ClusterState, Held
from tests.benchmarks.placement.clairvoyant import most_slices
from tests.benchmarks.placement.mixes import MIXES, Arrival, full_rate, shares_of, stream
from tests.benchmarks.placement.rules import RULES, Choice, Hami, Placer, hami_start, scored_start
from tests.benchmarks.placement.simulation import run_blocking, run_queueing
from tests.boards import ALLOWED_A100, board
from tests.core.selection.nodes import wants
from tests.scheduling.state.cluster import node, pod

TABLE = ProfileTable(board(names=ALLOWED_A100))
SMALL, TWO, THREE, WHOLE = range(4)
UNIFORM = (0.25,) * 4


def placed(placer: Placer, *shapes: int) -> list[tuple[int, int] | None]:
    """GPU and start of each instance."""
    return [where(placer.place(shape)) for shape in shapes]


def where(choice: Choice | None) -> tuple[int, int] | None:
    if choice is None:
        return None
    gpu, bits = choice
    return gpu, (bits & -bits).bit_length() - 1


def make(name: str, gpus: int = 2) -> Placer:
    return RULES[name](TABLE, gpus, UNIFORM)


def test_hami_spreads_over_the_gpus_of_a_node_and_starts_small_ones_at_the_top() -> None:
    # As recorded: 1g on the last GPU from the top, 2g on the other from the bottom, then 1g there.
    assert placed(make("hami"), SMALL, TWO, SMALL) == [(1, 6), (0, 0), (1, 5)]


def test_hami_binpack_fills_the_gpu_with_most_booked() -> None:
    assert placed(make("hami binpack"), SMALL, TWO, SMALL, THREE) == [
        (1, 6),
        (1, 0),
        (1, 5),
        (0, 4),
    ]


def test_hami_fills_a_node_before_the_next() -> None:
    placer = make("hami", 16)
    gpus = [choice[0] for choice in placed(placer, *[WHOLE] * 8) if choice is not None]
    assert sorted(gpus) == list(range(8))
    assert placed(placer, SMALL) == [(15, 6)]


def test_hamis_start_loses_the_3g_that_a_scored_start_keeps() -> None:
    # 2g at 0 and 1g at 6: no 3g fits. A start by the free run left keeps 0..3 for it.
    assert hami_start(TABLE, TWO, 1 << 6) == 0b11
    assert scored_start(TABLE, TWO, 1 << 6) == 0b110000


def test_first_fit_takes_the_first_gpu_and_start() -> None:
    assert placed(make("first-fit"), SMALL, TWO, THREE, THREE) == [(0, 0), (0, 2), (0, 4), (1, 0)]


def test_best_fit_takes_the_gpu_with_least_room() -> None:
    placer = make("best-fit", 3)
    assert placed(placer, THREE, THREE, SMALL, THREE) == [(0, 0), (0, 4), (1, 0), (1, 4)]


def test_mfi_avoids_blocking_starts() -> None:
    # On an empty GPU a 1g blocks least at 6: one 1g start, one 3g start, the 7g.
    assert placed(make("mfi", 1), SMALL) == [(0, 6)]


def test_fgd_does_not_strand_slices_that_the_mix_wants() -> None:
    only_whole = RULES["fgd"](TABLE, 2, (0, 0, 0, 1.0))
    # Once one GPU is broken for whole-GPU requests, the next small one goes there too.
    (first, second) = placed(only_whole, SMALL, SMALL)
    assert first is not None
    assert second is not None
    assert first[0] == second[0]


def test_ours_keeps_whole_gpus_whole() -> None:
    assert placed(make("ours"), SMALL, TWO, THREE, WHOLE) == [(0, 6), (0, 4), (0, 0), (1, 0)]


def test_repacking_refuses_only_what_does_not_fit_at_all() -> None:
    placer = make("repack", 1)
    assert [placer.place(shape) is not None for shape in (SMALL, TWO, THREE, SMALL, SMALL)] == [
        True, True, True, True, False,
    ]  # fmt: skip


def test_a_released_place_is_free_again() -> None:
    for name in RULES:
        placer = make(name, 1)
        choice = placer.place(WHOLE)
        assert choice is not None
        assert placer.place(SMALL) is None
        placer.release(choice, WHOLE)
        assert placer.place(WHOLE) is not None


def test_booked_shares_of_hami_return_to_nothing() -> None:
    placer = Hami(TABLE, 8)
    choices = [(placer.place(shape), shape) for shape in (SMALL, TWO, THREE) * 3]
    for choice, shape in choices:
        assert choice is not None
        placer.release(choice, shape)
    assert placer._booked == [0.0] * 8


def test_full_load_is_the_published_fluid_limit() -> None:
    table = ProfileTable(board())
    rate = full_rate(MIXES["uniform"], CapacityOracle(table), 100)
    assert rate == pytest.approx(100 * 8 / (21 / 6))


def test_shares_keep_their_sum_on_other_models() -> None:
    for key in ("a30", "rtx-pro-6000-se", "h100-sxm5-80gb"):
        assert sum(shares_of("skew-small", ProfileTable(board(key)))) == pytest.approx(1)


def test_streams_are_the_same_for_every_rule() -> None:
    assert stream(UNIFORM, 10, 50, "seed") == stream(UNIFORM, 10, 50, "seed")


def arrivals(*items: tuple[float, int, float]) -> list[Arrival]:
    return [Arrival(*item) for item in items]


def test_blocking_counts_what_was_refused_and_what_moving_would_have_placed() -> None:
    table = TABLE
    items = arrivals((1, SMALL, 9), (2, TWO, 9), (3, THREE, 9), (4, WHOLE, 9), (20, WHOLE, 1))
    outcome = run_blocking(
        Hami(table, 1), table, items, warm_up=0, oracle=CapacityOracle(table), gpus=1
    )
    assert outcome.offered == [1, 1, 1, 2]
    assert outcome.accepted == [1, 1, 0, 1]
    assert outcome.avoidable == 1


def test_the_clairvoyant_bound_is_above_every_feasible_choice() -> None:
    oracle = CapacityOracle(TABLE)
    rng = random.Random("clairvoyant")
    for _ in range(20):
        items = [Arrival(n, rng.randrange(4), rng.uniform(0.5, 6)) for n in range(9)]
        best = max(feasible(items, oracle))
        bound = most_slices(items, oracle, 1, reached=best, steps=200)
        assert best <= bound + 1e-9
        assert bound <= sum(TABLE.shapes[item.shape].memory_slices for item in items) + 1e-9


def feasible(items: list[Arrival], oracle: CapacityOracle) -> Iterator[int]:
    """Memory slices of every set of requests that one GPU can hold at every moment."""
    for chosen in product((False, True), repeat=len(items)):
        kept = [item for item, taken in zip(items, chosen, strict=True) if taken]
        if all(fits_at(kept, item.time, oracle) for item in kept):
            yield sum(TABLE.shapes[item.shape].memory_slices for item in kept)


def fits_at(kept: list[Arrival], moment: float, oracle: CapacityOracle) -> bool:
    counts = [0] * len(TABLE.shapes)
    for item in kept:
        counts[item.shape] += item.time <= moment < item.time + item.duration
    return oracle.within(counts, 1)


def test_queueing_starts_the_waiting_when_there_is_room() -> None:
    items = arrivals((0, WHOLE, 2), (1, SMALL, 5), (1.5, WHOLE, 1))
    outcome = run_queueing(make("ours", 1), TABLE, items, warm_up=0)
    assert outcome.waits == [0, 1, 5.5]


def test_the_simulated_rule_is_what_the_product_does() -> None:
    state = ClusterState(SchedulingPolicy())
    gpus = [board(uuid=f"GPU-{n}", index=n, names=ALLOWED_A100) for n in range(8)]
    state.set_node(node("node-1", gpus))
    placer = make("ours", 8)
    rng = random.Random("both")
    live: list[tuple[str, Choice, int]] = []
    for number in range(400):
        if live and rng.random() < 0.45:
            uid, choice, shape = live.pop(rng.randrange(len(live)))
            state.remove_pod(uid)
            placer.release(choice, shape)
            continue
        shape = rng.randrange(4)
        view = pod(f"p{number}")
        answer = state.filter(view, wants(TABLE.shapes[shape].profile.name), ["node-1"])
        found = placer.place(shape)
        assert isinstance(answer, Held) == (found is not None)
        if isinstance(answer, Held) and found is not None:
            (item,) = answer.hold.reservations
            assert (int(item.gpu_uuid[4:]), item.placement.start) == where(found)
            live.append((view.uid, found, shape))
