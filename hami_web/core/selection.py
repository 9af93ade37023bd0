"""Which GPUs a Pod accepts, the plan for all its devices on one node, and why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import Final, NamedTuple

from hami_web.core.capability import GpuCapability
from hami_web.core.device_list import ListedDevice
from hami_web.core.hami import HamiPlanner, HamiRule
from hami_web.core.offers import Kind
from hami_web.core.plan import NodePlan, Pick
from hami_web.core.planning import OpenGpu, Planner
from hami_web.core.policies import Rule
from hami_web.core.policy_names import FIRST_FIT, MUTEX
from hami_web.core.reasons import Reason
from hami_web.core.request import ContainerRequest, Demand, GpuSelector, PodRequest
from hami_web.core.reservation import Reservation
from hami_web.core.tables import ProfileTable

_BINDINGS_MAX: Final = 64
"""Ways to give containers a NUMA node each that are all tried; beyond, one node for all."""


class Choice(NamedTuple):
    """A node's plan turned into what is written: reservations, and devices per container."""

    rank: tuple[int, ...]
    reservations: tuple[Reservation, ...]
    devices: tuple[tuple[ListedDevice, ...], ...]


Planned = tuple[NodePlan, tuple[int, ...]]
"""A plan, and the number of the kind of each container's devices in it."""


class Selection:
    """One request under one rule, planned on any node. Not synchronized."""

    def __init__(self, request: PodRequest, rule: Rule | HamiRule, *, upsize: bool = False) -> None:
        self.request = request
        self._rule = rule
        self._upsize = upsize
        self._accepts_all = request.selector == GpuSelector() and request.accepts_mig
        self._hami = (
            HamiPlanner(request.containers, rule, numa_bind=request.numa_bind, upsize=upsize)
            if isinstance(rule, HamiRule)
            else None
        )
        self._unmet_reasons: dict[tuple[ProfileTable, int], Reason | None] = {}
        self._planners: dict[tuple[int | None, ...], tuple[Planner, tuple[int, ...]]] = {}

    def refusal(self, gpu: GpuCapability) -> Reason | None:
        """Why the Pod does not accept a GPU, whatever is free on it."""
        return unaccepted(gpu, self.request.selector, accepts_mig=self.request.accepts_mig)

    def accepted(self, gpus: Sequence[OpenGpu]) -> Sequence[OpenGpu]:
        """The GPUs that the Pod accepts."""
        if self._accepts_all:
            return gpus
        return [gpu for gpu in gpus if self.refusal(gpu.capability) is None]

    def plan(self, gpus: Sequence[OpenGpu]) -> Planned | None:
        """The best plan on a node's open GPUs, in order of index, or None."""
        gpus = self.accepted(gpus)
        if self._hami is not None:
            found = self._hami.plan(gpus)
            return None if found is None else (found, tuple(range(len(self.request.containers))))
        if self.request.numa_bind:
            return self._plan_bound(gpus)
        planner, kinds = self._unbound
        found = planner.plan(gpus)
        return None if found is None else (found, kinds)

    def choose(self, gpus: Sequence[OpenGpu]) -> Choice | None:
        """The best plan on a node, written out per container."""
        planned = self.plan(gpus)
        return None if planned is None else self.write(planned)

    def found(self, gpus: Sequence[OpenGpu]) -> int:
        """The most of the Pod's devices that fit together on these open GPUs."""
        accepted = self.accepted(gpus)
        if self._hami is not None:
            return self._hami.found(accepted)
        return max(
            (self._planner(b)[0].found(accepted) for b in self._bindings(accepted)), default=0
        )

    def explain(self, gpu: OpenGpu) -> Reason | None:
        """Why not one device of the Pod fits on an open GPU, or None when one does."""
        refusal = self.refusal(gpu.capability)
        if refusal is not None:
            return refusal
        if self._exclusive and gpu.state:
            return Reason.EXCLUSIVE
        key = (gpu.table, gpu.state)
        if key not in self._unmet_reasons:
            demands = dict.fromkeys(container.demand for container in self.request.containers)
            reasons = [self._unmet(demand, gpu) for demand in demands]
            self._unmet_reasons[key] = None if None in reasons else reasons[0]
        return self._unmet_reasons[key]

    @cached_property
    def _unbound(self) -> tuple[Planner, tuple[int, ...]]:
        return self._planner((None,) * len(self.request.containers))

    def _plan_bound(self, gpus: Sequence[OpenGpu]) -> Planned | None:
        best: Planned | None = None
        for binding in self._bindings(gpus):
            planner, kinds = self._planner(binding)
            plan = planner.plan(gpus)
            if plan is not None and (best is None or plan.rank < best[0].rank):
                best = (plan, kinds)
        return best

    def _bindings(self, gpus: Sequence[OpenGpu]) -> Iterator[tuple[int | None, ...]]:
        """NUMA nodes for the containers: every way, or every node for all of them."""
        containers = len(self.request.containers)
        if not self.request.numa_bind:
            yield (None,) * containers
            return
        nodes = sorted({gpu.capability.numa for gpu in gpus})
        if len(nodes) ** containers <= _BINDINGS_MAX:
            yield from product(nodes, repeat=containers)
        else:
            for node in nodes:
                yield (node,) * containers

    def _planner(self, binding: tuple[int | None, ...]) -> tuple[Planner, tuple[int, ...]]:
        """The planner of a binding, and the number of the kind of each container."""
        known = self._planners.get(binding)
        if known is None:
            kinds, numbers = _kinds(self.request.containers, binding)
            planner = Planner(kinds, self._joint, upsize=self._upsize)
            known = self._planners[binding] = (planner, numbers)
        return known

    @property
    def by_name(self) -> bool:
        """True when of equal nodes the first by name is to be taken."""
        return isinstance(self._rule, HamiRule) or self._rule.node == FIRST_FIT

    @property
    def _exclusive(self) -> bool:
        return isinstance(self._rule, HamiRule) and MUTEX in self._rule.gpu

    @property
    def _joint(self) -> Rule:
        if isinstance(self._rule, HamiRule):  # HAMi's planner is asked before
            raise TypeError("HAMi's rule plans one container after another")
        return self._rule

    def _unmet(self, demand: Demand, gpu: OpenGpu) -> Reason | None:
        shapes = gpu.table.satisfying(demand)
        if not shapes:
            return unsatisfied(demand, gpu.table)
        for shape in shapes if self._upsize else shapes[:1]:
            if gpu.table.most(gpu.state, shape):
                return None
        if gpu.table.free_memory_slices(gpu.state) < shapes[0].memory_slices:
            return Reason.INSUFFICIENT_MEMORY
        return Reason.TOPOLOGY_INFEASIBLE

    def write(self, planned: Planned) -> Choice:
        """A plan of this request written out per container."""
        plan, kinds = planned
        if len(plan.picks) == 1:  # by far the most frequent
            (pick,), (container,) = plan.picks, self.request.containers
            index = container.container_index
            before, after = index, self.request.container_count - index - 1
            listed = (*((),) * before, (_listed(pick),), *((),) * after)
            return Choice(plan.rank, (_reservation(index, 0, pick),), listed)
        waiting: dict[int, list[Pick]] = {}
        for pick in plan.picks:
            waiting.setdefault(pick.kind, []).append(pick)
        reservations: list[Reservation] = []
        devices: list[tuple[ListedDevice, ...]] = [()] * self.request.container_count
        for container, kind in zip(self.request.containers, kinds, strict=True):
            taken = waiting[kind][: container.count]
            del waiting[kind][: container.count]
            index = container.container_index
            reservations.extend(_reservation(index, d, pick) for d, pick in enumerate(taken))
            devices[index] = tuple(_listed(pick) for pick in taken)
        return Choice(plan.rank, tuple(reservations), tuple(devices))


def unaccepted(
    gpu: GpuCapability, selector: GpuSelector, *, accepts_mig: bool = True
) -> Reason | None:
    """Why a Pod does not accept a GPU in MIG mode, by HAMi's order of checks, or None."""
    if not accepts_mig or not selector.accepts_type(gpu.model):
        return Reason.TYPE_MISMATCH
    if not selector.accepts_uuid(gpu.uuid):
        return Reason.UUID_MISMATCH
    return None


def unsatisfied(demand: Demand, table: ProfileTable) -> Reason:
    """Why no profile of a table satisfies a demand, where none does."""
    if demand.profile is not None and demand.profile not in table.by_name:
        return Reason.UNKNOWN_PROFILE
    if not table.shapes:
        return Reason.TOPOLOGY_INFEASIBLE
    without_cores = Demand(demand.memory_mib, demand.memory_percent, 0, demand.profile)
    if table.satisfying(without_cores):
        return Reason.INSUFFICIENT_CORES
    return Reason.INSUFFICIENT_MEMORY


def _kinds(
    containers: Sequence[ContainerRequest], binding: Sequence[int | None]
) -> tuple[tuple[Kind, ...], tuple[int, ...]]:
    counts: dict[tuple[Demand, int | None], int] = {}
    for container, numa in zip(containers, binding, strict=True):
        key = (container.demand, numa)
        counts[key] = counts.get(key, 0) + container.count
    ordered = sorted(counts, key=_kind_order)
    kinds = tuple(Kind(demand, counts[demand, numa], numa) for demand, numa in ordered)
    numbers = tuple(
        ordered.index((container.demand, numa))
        for container, numa in zip(containers, binding, strict=True)
    )
    return kinds, numbers


def _kind_order(key: tuple[Demand, int | None]) -> tuple[int, int, int, str, int]:
    demand, numa = key
    return (
        demand.memory_mib or 0,
        demand.memory_percent or 0,
        demand.core_percent,
        demand.profile or "",
        -1 if numa is None else numa,
    )


def _reservation(container: int, device: int, pick: Pick) -> Reservation:
    return Reservation(container, device, pick.gpu.uuid, pick.shape.profile.name, pick.placement)


def _listed(pick: Pick) -> ListedDevice:
    profile = pick.shape.profile
    return ListedDevice(pick.gpu.uuid, profile.memory_mib, profile.core_percent)
