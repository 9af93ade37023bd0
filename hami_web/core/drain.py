"""The fewest Pods to move so that so many placements of a profile become free.

GPUs that share no Pod are independent: for each the cheapest way to every number of placements is
found by trying all sets of its Pods, and the ways are combined by a knapsack over the GPUs. Pods
with devices on several GPUs tie those together; within such a group every set of the tying Pods
is tried. The answer is exact as long as no group has more of them than ``_TIES_MAX``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from hami_web.core.housing import Housing, Tenant
from hami_web.core.placement import Placement
from hami_web.core.shapes import Shape
from hami_web.core.tables import Fit, ProfileTable

_TIES_MAX: Final = 12
"""Pods on several GPUs of one group whose sets are all tried: 4,096."""
_ON_ONE_GPU_MAX: Final = 14
"""Pods of one GPU whose sets are all tried; no GPU known holds more than 8 instances."""


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """Which Pods to move, and where the placements are then.

    ``homes`` says for each moved reservation where it would fit afterwards, beside the new
    placements; ``homeless`` Pods have no other place in the cluster as it is. ``exact`` is false
    when a group had too many Pods on several GPUs to try all of them.
    """

    owners: tuple[str, ...]
    placements: tuple[tuple[str, str, Placement], ...]
    homes: Mapping[str, tuple[tuple[str, str, Placement], ...]]
    homeless: tuple[str, ...]
    exact: bool


Cost = tuple[int, int]
"""Pods moved, and the sum of their priorities: fewest first, then the least important."""
Way = tuple[Cost, frozenset[str]]


def plan_drain(
    gpus: Sequence[Housing],
    profile: str,
    wanted: int,
    *,
    may_move: Callable[[Tenant], bool] = lambda _tenant: True,
) -> DrainPlan | None:
    """The fewest Pods whose move leaves ``wanted`` placements of a profile free, or None.

    ``may_move`` keeps Pods out: those marked do-not-evict, or of a priority that must not yield.
    A Pod moves as a whole or not at all. Of equal plans the one with the least priorities wins,
    then the one that comes first by UID.
    """
    fixed = {t.owner for gpu in gpus for t in gpu.tenants if not may_move(t)}
    exact = True
    totals: dict[int, Way] = {0: ((0, 0), frozenset())}
    for group in _groups(gpus):
        ways, complete = _ways_of(group, profile, fixed)
        exact = exact and complete
        totals = _combine(totals, ways, wanted)
    found = totals.get(wanted)
    if found is None:
        return None
    owners = found[1]
    placements = _place_wanted(gpus, profile, wanted, owners)
    homes, homeless = _rehouse(gpus, placements, owners)
    return DrainPlan(tuple(sorted(owners)), tuple(placements), homes, homeless, exact)


def _groups(gpus: Sequence[Housing]) -> Iterable[list[Housing]]:
    """GPUs tied together by Pods on several of them."""
    leaders = list(range(len(gpus)))

    def leader(position: int) -> int:
        while leaders[position] != position:
            leaders[position] = leaders[leaders[position]]
            position = leaders[position]
        return position

    first_of: dict[str, int] = {}
    for position, gpu in enumerate(gpus):
        for tenant in gpu.tenants:
            other = first_of.setdefault(tenant.owner, position)
            leaders[leader(position)] = leader(other)
    groups: dict[int, list[Housing]] = {}
    for position, gpu in enumerate(gpus):
        groups.setdefault(leader(position), []).append(gpu)
    return groups.values()


def _ways_of(group: list[Housing], profile: str, fixed: set[str]) -> tuple[dict[int, Way], bool]:
    """The cheapest way to each number of placements on one group."""
    homes: dict[str, set[str]] = {}
    for gpu in group:
        for tenant in gpu.tenants:
            homes.setdefault(tenant.owner, set()).add(gpu.gpu_uuid)
    tying = sorted(owner for owner, on in homes.items() if len(on) > 1 and owner not in fixed)
    complete = len(tying) <= _TIES_MAX
    best: dict[int, Way] = {}
    for moved in _subsets(tying[:_TIES_MAX]):
        ways: dict[int, Way] = {0: (_cost(group, moved), frozenset(moved))}
        for gpu in group:
            kept = fixed | set(tying)
            own, all_tried = _ways_on(gpu, profile, moved, kept)
            complete = complete and all_tried
            ways = _combine(ways, own, None)
        for count, way in ways.items():
            _keep(best, count, way)
    return best, complete


def _ways_on(
    gpu: Housing, profile: str, moved: Sequence[str], kept: set[str]
) -> tuple[dict[int, Way], bool]:
    """The cheapest way to each number of placements on one GPU, some Pods already moved."""
    shape = gpu.table.by_name.get(profile)
    own = sorted({t.owner for t in gpu.tenants} - kept)
    ways: dict[int, Way] = {0: ((0, 0), frozenset())}
    if shape is None:
        return ways, True
    for also in _subsets(own[:_ON_ONE_GPU_MAX]):
        count = gpu.table.most(gpu.state_without((*moved, *also)), shape)
        _keep(ways, count, (_cost([gpu], also), frozenset(also)))
    return ways, len(own) <= _ON_ONE_GPU_MAX


def _combine(
    left: Mapping[int, Way], right: Mapping[int, Way], wanted: int | None
) -> dict[int, Way]:
    """Sums of placements over two parts; numbers above the wanted count as the wanted."""
    best: dict[int, Way] = {}
    for a, (a_cost, a_owners) in left.items():
        for b, (b_cost, b_owners) in right.items():
            count = a + b if wanted is None else min(a + b, wanted)
            cost = (a_cost[0] + b_cost[0], a_cost[1] + b_cost[1])
            known = best.get(count)
            if known is None or cost < known[0]:
                best[count] = (cost, a_owners | b_owners)
            elif cost == known[0]:
                owners = a_owners | b_owners
                if sorted(owners) < sorted(known[1]):
                    best[count] = (cost, owners)
    return best


def _keep(ways: dict[int, Way], count: int, way: Way) -> None:
    known = ways.get(count)
    if known is None or (way[0], sorted(way[1])) < (known[0], sorted(known[1])):
        ways[count] = way


def _cost(gpus: Sequence[Housing], owners: Iterable[str]) -> Cost:
    chosen = set(owners)
    priorities = {t.owner: t.priority for gpu in gpus for t in gpu.tenants if t.owner in chosen}
    return (len(chosen), sum(priorities.values()))


def _subsets(items: Sequence[str]) -> Iterable[tuple[str, ...]]:
    for size in range(len(items) + 1):
        yield from combinations(items, size)


def _place_wanted(
    gpus: Sequence[Housing], profile: str, wanted: int, owners: Iterable[str]
) -> list[tuple[str, str, Placement]]:
    """Where the placements are, most per GPU first."""
    placed: list[tuple[str, str, Placement]] = []
    for gpu in gpus:
        shape = gpu.table.by_name.get(profile)
        if shape is None:
            continue
        state = gpu.state_without(owners)
        count = min(gpu.table.most(state, shape), wanted - len(placed))
        packing = gpu.table.pack(state, _only(gpu.table, shape, count))
        if packing is not None:
            placed.extend((gpu.node, gpu.gpu_uuid, place) for _, place in packing.placed)
    return placed


def _only(table: ProfileTable, shape: Shape, count: int) -> tuple[int, ...]:
    return tuple(count if other is shape else 0 for other in table.shapes)


def _rehouse(
    gpus: Sequence[Housing],
    placements: Sequence[tuple[str, str, Placement]],
    owners: frozenset[str],
) -> tuple[dict[str, tuple[tuple[str, str, Placement], ...]], tuple[str, ...]]:
    """A place for each moved reservation, largest first, where it costs least."""
    states = {gpu.gpu_uuid: gpu.state_without(owners) for gpu in gpus}
    for _, uuid, placement in placements:
        states[uuid] |= placement.mask
    moved = [t for gpu in gpus for t in gpu.tenants if t.owner in owners]
    moved.sort(key=lambda t: (-t.placement.size, t.owner, t.placement))
    homes: dict[str, list[tuple[str, str, Placement]]] = {}
    homeless: set[str] = set()
    for tenant in moved:
        home = _cheapest(gpus, states, tenant.profile)
        if home is None:
            homeless.add(tenant.owner)
            continue
        homes.setdefault(tenant.owner, []).append(home)
    found = {owner: tuple(home) for owner, home in homes.items() if owner not in homeless}
    return found, tuple(sorted(homeless))


def _cheapest(
    gpus: Sequence[Housing], states: dict[str, int], profile: str
) -> tuple[str, str, Placement] | None:
    best: tuple[Fit, Housing] | None = None
    for gpu in gpus:
        shape = gpu.table.by_name.get(profile)
        fit = None if shape is None else gpu.table.best(states[gpu.gpu_uuid], shape)
        if fit is not None and (best is None or fit.loss < best[0].loss):
            best = (fit, gpu)
    if best is None:
        return None
    fit, gpu = best
    states[gpu.gpu_uuid] = fit.state
    return gpu.node, gpu.gpu_uuid, fit.placement
