"""GPUs of one node in given states, for tests of planning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hami_web.core.capability import GpuCapability
from hami_web.core.hami import Booked, HamiRule
from hami_web.core.policies import Rule
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.request import ContainerRequest, Demand, GpuSelector, PodRequest
from hami_web.core.selection import Choice, Selection
from hami_web.core.tables import ProfileTable, TableStore
from tests.boards import board

_TABLES = TableStore()
NOTHING = Booked()


@dataclass(frozen=True)
class Gpu:
    capability: GpuCapability
    table: ProfileTable
    state: int = 0
    booked: Booked = NOTHING


def gpu(
    index: int = 0,
    taken: Sequence[tuple[str, int]] = (),
    *,
    key: str = "a100-sxm4-40gb",
    names: tuple[str, ...] | None = None,
    numa: int = 0,
) -> Gpu:
    """GPU ``GPU-<index>`` with instances given by profile and start."""
    capability = board(key, f"GPU-{index}", index, names=names, numa=numa)
    table = _TABLES.table_for(capability)
    state = 0
    for name, start in taken:
        shape = table.by_name[name]
        (fit,) = (f for f in table.fits(state, shape) if f.placement.start == start)
        state = fit.state
    return Gpu(capability, table, state)


def wants(
    *profiles: str | tuple[str, int], numa_bind: bool = False, selector: GpuSelector | None = None
) -> PodRequest:
    """A Pod with one container per entry, each asking for one profile, or some of it."""
    containers = tuple(
        ContainerRequest(position, f"c{position}", count, Demand(profile=name))
        for position, (name, count) in enumerate(
            (entry, 1) if isinstance(entry, str) else entry for entry in profiles
        )
    )
    return PodRequest(len(containers), containers, selector or GpuSelector(), numa_bind=numa_bind)


def rule(policy: str = "cap-loss") -> Rule | HamiRule:
    return SchedulingPolicy(policy).rule_for(PodRequest(0, ()))


def choose(
    request: PodRequest, gpus: Sequence[Gpu], policy: str = "cap-loss", *, upsize: bool = False
) -> Choice | None:
    return Selection(request, rule(policy), upsize=upsize).choose(gpus)


def written(choice: Choice | None) -> list[str]:
    """``c<container>d<device> <gpu> <profile>@<start>`` of every reservation."""
    assert choice is not None
    return [
        f"c{r.container_index}d{r.device_index} {r.gpu_uuid} {r.profile}@{r.placement.start}"
        for r in choice.reservations
    ]


def short(choice: Choice | None) -> list[str]:
    """``<gpu number>:<profile>@<start>``, sorted."""
    assert choice is not None
    return sorted(
        f"{r.gpu_uuid.removeprefix('GPU-')}:{r.profile}@{r.placement.start}"
        for r in choice.reservations
    )
