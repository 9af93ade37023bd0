"""HAMi v2.10's way to choose, for people who compare: its GPU, node and placement order.

One container after another, one GPU after another, no plan. Three things differ on purpose. Init
containers and app containers get disjoint placements, where HAMi lets them overlap. Equal nodes
are taken by name, where HAMi takes a random one. Cores are what the profile has, where HAMi sums
rounded shares and then refuses GPUs that have room. A larger profile than the smallest is taken
only with ``upsize``, which HAMi always does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from hami_web.core.capability import GpuCapability
from hami_web.core.errors import InvalidRequest
from hami_web.core.placement import Placement
from hami_web.core.plan import NodePlan, Pick
from hami_web.core.policy_names import BINPACK, MUTEX, NUMA, SPREAD, TOPOLOGY
from hami_web.core.request import ContainerRequest, Demand
from hami_web.core.shapes import Shape
from hami_web.core.tables import Fit, ProfileTable

_FROM_THE_END: Final = (1, 3)
"""Compute slices of the profiles whose placements HAMi tries from the highest start: it looks for
names that begin with ``1g.`` or ``3g.``."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts how much in HAMi's score of a GPU."""

    slot: int = 1
    core: int = 1
    memory: int = 1


EVEN_WEIGHTS: Final = Weights()


@dataclass(frozen=True, slots=True)
class Booked:
    """What the instances on a GPU add up to: their number, cores in percent, memory in MiB."""

    instances: int = 0
    core_percent: int = 0
    memory_mib: int = 0

    def plus(self, shape: Shape) -> Booked:
        """One more instance."""
        return Booked(
            self.instances + 1,
            self.core_percent + shape.profile.core_percent,
            self.memory_mib + shape.profile.memory_mib,
        )


class BookedGpu(Protocol):
    """What HAMi's rule reads of a GPU."""

    @property
    def capability(self) -> GpuCapability: ...
    @property
    def table(self) -> ProfileTable: ...
    @property
    def state(self) -> int: ...
    @property
    def booked(self) -> Booked: ...


@dataclass(frozen=True, slots=True)
class HamiRule:
    """The words of the two annotations. ``gpu`` may be several, each breaking the ties before."""

    node: str = BINPACK
    gpu: tuple[str, ...] = (SPREAD,)
    weights: Weights = EVEN_WEIGHTS


@dataclass(slots=True)
class _Working:
    capability: GpuCapability
    table: ProfileTable
    state: int
    booked: Booked

    def score(self, weights: Weights) -> float:
        """HAMi's score, before the device that is asked for."""
        return 10 * (
            weights.slot * self.booked.instances / max(1, self.capability.count)
            + weights.core * self.booked.core_percent / max(1, self.capability.core_percent)
            + weights.memory * self.booked.memory_mib / max(1, self.capability.memory_mib)
        )


@dataclass(slots=True)
class _Attempt:
    """Devices found for one container. With NUMA binding a change of node starts it anew."""

    wanted: ContainerRequest
    found: list[tuple[_Working, Shape, Fit]] = field(default_factory=list)

    @property
    def done(self) -> bool:
        return len(self.found) == self.wanted.count


class HamiPlanner:
    """Plans one Pod as HAMi would, on any node. Not synchronized."""

    def __init__(
        self,
        containers: Sequence[ContainerRequest],
        rule: HamiRule,
        *,
        numa_bind: bool = False,
        upsize: bool = False,
    ) -> None:
        self._containers = tuple(containers)
        self._rule = rule
        self._numa_bind = numa_bind
        self._upsize = upsize

    def plan(self, gpus: Sequence[BookedGpu]) -> NodePlan | None:
        """HAMi's choice on these GPUs of one node, in order of index, or None.

        The rank puts a node before another as HAMi's node policy does; the kind of a pick is the
        position of its container.
        """
        found = self._walk(gpus)
        if len(found) < sum(container.count for container in self._containers):
            return None
        return NodePlan((0, self._node_order(gpus)), tuple(found))

    def found(self, gpus: Sequence[BookedGpu]) -> int:
        """How many devices HAMi's walk places before it gives up."""
        return len(self._walk(gpus))

    def _walk(self, gpus: Sequence[BookedGpu]) -> list[Pick]:
        working = [_Working(g.capability, g.table, g.state, g.booked) for g in gpus]
        picks: list[Pick] = []
        for position, container in enumerate(self._containers):
            attempt = self._fit(container, working)
            picks.extend(
                Pick(position, gpu.capability, shape, fit.placement)
                for gpu, shape, fit in attempt.found
            )
            if not attempt.done:
                break
        return picks

    def _fit(self, container: ContainerRequest, gpus: list[_Working]) -> _Attempt:
        attempt = _Attempt(container)
        before = [(gpu, gpu.state, gpu.booked) for gpu in gpus]
        numa: int | None = None
        for gpu in self._in_order(gpus):
            if self._numa_bind and gpu.capability.numa != numa:
                for other, state, booked in before:
                    other.state, other.booked = state, booked
                attempt.found.clear()
                numa = gpu.capability.numa
            if MUTEX in self._rule.gpu and gpu.booked.instances:
                continue
            while not attempt.done:
                chosen = self._place(container.demand, gpu)
                if chosen is None:
                    break
                shape, fit = chosen
                gpu.state = fit.state
                gpu.booked = gpu.booked.plus(shape)
                attempt.found.append((gpu, shape, fit))
                if MUTEX in self._rule.gpu:
                    break
            if attempt.done:
                break
        return attempt

    def _place(self, demand: Demand, gpu: _Working) -> tuple[Shape, Fit] | None:
        shapes = gpu.table.satisfying(demand)
        for shape in shapes if self._upsize else shapes[:1]:
            fits = gpu.table.fits(gpu.state, shape)
            if fits:
                return shape, _preferred(shape, fits)
        return None

    def _in_order(self, gpus: list[_Working]) -> Iterable[_Working]:
        """HAMi's order of the GPUs for one container."""
        words = self._rule.gpu
        if words in ((SPREAD,), (BINPACK,), (TOPOLOGY,)):
            words = (*words, NUMA)
        keys = [_GPU_KEYS[word](self._rule.weights) for word in words]
        # Sorted in place and walked from the end: of equal GPUs the last comes first, and the order
        # that one container leaves is what the next one's ties follow.
        gpus.sort(key=lambda gpu: tuple(key(gpu) for key in keys))
        return reversed(gpus)

    def _node_order(self, gpus: Sequence[BookedGpu]) -> int:
        used = [gpu.booked for gpu in gpus]
        score = 10 * (
            _share(sum(b.instances for b in used), sum(g.capability.count for g in gpus))
            + _share(
                sum(b.core_percent for b in used), sum(g.capability.core_percent for g in gpus)
            )
            + _share(sum(b.memory_mib for b in used), sum(g.capability.memory_mib for g in gpus))
        )
        rounded = round(score * 1_000_000)
        return rounded if self._rule.node == SPREAD else -rounded


def parse_weights(text: str, field_name: str) -> Weights:
    """Read ``slot=a,core=b,memory=c``; raises :class:`InvalidRequest` for anything else."""
    allowed = "slot=a,core=b,memory=c with whole numbers of 0 or more, not all 0"
    values: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = part.strip().partition("=")
        known = name in Weights.__dataclass_fields__ and name not in values
        if not known or not (number.isascii() and number.isdigit()) or len(number) > 9:
            raise InvalidRequest(field_name, text, allowed)
        values[name] = int(number)
    if len(values) != len(Weights.__dataclass_fields__) or not any(values.values()):
        raise InvalidRequest(field_name, text, allowed)
    return Weights(**values)


def _preferred(shape: Shape, fits: Sequence[Fit]) -> Fit:
    starts: Callable[..., Placement] = lambda fit: fit.placement  # noqa: E731
    if shape.profile.compute_slices in _FROM_THE_END:
        return max(fits, key=starts)
    return min(fits, key=starts)


def _share(part: int, whole: int) -> float:
    return part / max(1, whole)


GpuKey = Callable[[_Working], float]

_GPU_KEYS: Final[dict[str, Callable[[Weights], GpuKey]]] = {
    SPREAD: lambda weights: lambda gpu: -gpu.score(weights),
    BINPACK: lambda weights: lambda gpu: gpu.score(weights),
    TOPOLOGY: lambda weights: lambda gpu: -gpu.score(weights),
    MUTEX: lambda _weights: lambda gpu: -gpu.booked.instances,
    NUMA: lambda _weights: lambda gpu: gpu.capability.numa,
}
