"""Questions about a cluster that change nothing: where would it go, and what is in the way?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from hami_web.core.housing import Housing, Tenant
from hami_web.core.placement import Placement
from hami_web.core.planning import OpenGpu
from hami_web.core.request import Demand
from hami_web.core.selection import Choice, Selection
from hami_web.core.shapes import Shape
from hami_web.core.tables import ProfileTable

_TRIED_MAX: Final = 14
"""Reservations of one GPU whose sets are all tried; no GPU known holds more than 8."""


@dataclass(frozen=True, slots=True)
class Blockers:
    """The reservations that must end, all on one GPU, so that a request fits."""

    node: str
    gpu_uuid: str
    tenants: tuple[Tenant, ...]
    profile: str = ""
    placement: Placement | None = None


@dataclass(frozen=True, slots=True)
class Smaller:
    """A smaller profile that would fit now, and where."""

    profile: str
    memory_mib: int
    node: str
    gpu_uuid: str
    placement: Placement


def ranked(
    nodes: Mapping[str, Sequence[OpenGpu]],
    selection: Selection,
    *,
    tie: Callable[[str], int] = lambda _name: 0,
) -> list[tuple[str, Choice]]:
    """Every node that takes the request with its best plan, best node first.

    ``nodes`` gives the open GPUs of each node in order of index; ``tie`` orders nodes of equal
    rank before their names do.
    """
    found = [
        (name, choice)
        for name, gpus in nodes.items()
        if (choice := selection.choose(gpus)) is not None
    ]
    return sorted(found, key=lambda item: (item[1].rank, tie(item[0]), item[0]))


def blockers_of_one(
    gpus: Iterable[Housing],
    demand: Demand,
    *,
    may_end: Callable[[Tenant], bool] = lambda _tenant: True,
    enough: int = 0,
) -> Blockers | None:
    """The fewest reservations over all GPUs whose end frees a place for one device.

    The search stops at the first answer with no more than ``enough``: 1 where it is known that
    nothing fits as it is.

    Exact: for every legal placement what overlaps it must end, and with limits on a profile what
    uses them up. Equal answers: the first GPU, then the lowest placement. None when nothing that
    may end would help.
    """
    best: Blockers | None = None
    for gpu in gpus:
        limit = None if best is None else len(best.tenants)
        found = _on_one_gpu(gpu, demand, may_end, limit)
        if found is not None and (best is None or len(found.tenants) < len(best.tenants)):
            best = found
            if len(best.tenants) <= enough:
                break
    return best


def blockers_on_gpu(
    gpu: Housing,
    fits: Callable[[int], bool],
    *,
    may_end: Callable[[Tenant], bool] = lambda _tenant: True,
) -> Blockers | None:
    """The fewest reservations of one GPU whose end makes anything fit, tried by number.

    ``fits`` is asked with the state that the GPU would have, for instance by planning the whole
    node with it.
    """
    movable = [t for t in gpu.tenants if may_end(t)][:_TRIED_MAX]
    for ended in _sets(movable):
        state = _state_after(gpu, ended)
        if fits(state):
            return Blockers(gpu.node, gpu.gpu_uuid, ended)
    return None


def smaller_that_fits(gpus: Iterable[Housing], demand: Demand) -> Smaller | None:
    """The largest profile below the smallest that satisfies a demand which has a place now."""
    best: tuple[tuple[int, int, str], Smaller] | None = None
    offered: dict[ProfileTable, list[int]] = {}
    for gpu in gpus:
        table = gpu.table
        if table not in offered:
            offered[table] = _below(table, demand)
        state = gpu.state_without()
        for index in offered[table]:
            shape = table.shapes[index]
            if best is not None and shape.profile.order <= best[0]:
                break
            fit = table.best(state, shape)
            if fit is not None:
                profile = shape.profile
                found = Smaller(
                    profile.name, profile.memory_mib, gpu.node, gpu.gpu_uuid, fit.placement
                )
                best = (profile.order, found)
                break
    return None if best is None else best[1]


def _below(table: ProfileTable, demand: Demand) -> list[int]:
    """Plain profiles smaller than what the demand needs, largest first.

    Of a profile that the table does not have, nothing says what is smaller.
    """
    needed = table.satisfying(demand)
    if not needed and demand.profile is not None:
        return []
    end = needed[0].index if needed else len(table.shapes)
    return [i for i in reversed(range(end)) if not table.shapes[i].profile.attribute]


def _on_one_gpu(
    gpu: Housing, demand: Demand, may_end: Callable[[Tenant], bool], limit: int | None
) -> Blockers | None:
    shapes = gpu.table.satisfying(demand)
    if not shapes:
        return None
    shape = shapes[0]
    best: Blockers | None = None
    blocked = gpu.table.state_of((), gpu.blocked)
    for placement, mask in zip(shape.placements, shape.masks, strict=True):
        over = tuple(t for t in gpu.tenants if t.placement.mask & mask)
        fewest = limit if best is None else len(best.tenants)
        if mask & blocked or (fewest is not None and len(over) >= fewest):
            continue
        if all(map(may_end, over)) and _fits_at(gpu, over, shape, placement):
            best = Blockers(gpu.node, gpu.gpu_uuid, over, shape.profile.name, placement)
    if best is None and (shape.tokens or shape.needs_clear):
        return blockers_on_gpu(
            gpu, lambda state: bool(gpu.table.most(state, shape)), may_end=may_end
        )
    return best


def _fits_at(gpu: Housing, ended: Sequence[Tenant], shape: Shape, placement: Placement) -> bool:
    fits = gpu.table.fits(_state_after(gpu, ended), shape)
    return any(fit.placement == placement for fit in fits)


def _state_after(gpu: Housing, ended: Sequence[Tenant]) -> int:
    kept = [t for t in gpu.tenants if not any(t is other for other in ended)]
    return gpu.table.state_of(((t.profile, t.placement) for t in kept), gpu.blocked)


def _sets(items: Sequence[Tenant]) -> Iterator[tuple[Tenant, ...]]:
    for size in range(len(items) + 1):
        yield from combinations(items, size)
