"""All devices of a Pod on one node, planned together.

Devices that ask for the same thing form one *kind*. For each GPU the planner knows which numbers
of each kind fit and what they cost there (its *offers*, kept per state of a GPU); a dynamic
programme over the GPUs then finds the cheapest way to place all kinds. Its cost grows with
GPUs x kinds, never with the number of ways to arrange single devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hami_web.core.capability import GpuCapability
from hami_web.core.hami import Booked, BookedGpu
from hami_web.core.offers import FIELD, GUARD, Kind, Offer, total, vectors
from hami_web.core.placement import Placement
from hami_web.core.plan import NodePlan, Pick
from hami_web.core.policies import Rule
from hami_web.core.shapes import Shape
from hami_web.core.tables import ProfileTable

_STEPS_MAX: Final = 4096
"""Most combinations of counts that are planned exactly; beyond, one kind after another."""
_OFFERS_MAX: Final = 1 << 15


OpenGpu = BookedGpu
"""What planners read of a GPU: capability, table, state, and what is booked on it."""

_Cheapest = tuple[tuple[int, int], Offer]
"""Level and cost, and what is offered for them."""


class Planner:
    """Plans one request under one rule on any node. Not synchronized."""

    def __init__(self, kinds: Sequence[Kind], rule: Rule, *, upsize: bool = False) -> None:
        self.kinds = tuple(kinds)
        self.rule = rule
        self.upsize = upsize
        self._bound = any(kind.numa is not None for kind in kinds)
        self.devices = sum(kind.count for kind in kinds)
        self._wanted = sum(
            min(kind.count, GUARD - 1) << (FIELD * i) for i, kind in enumerate(kinds)
        )
        self._guards = sum(GUARD << (FIELD * i) for i in range(len(kinds)))
        self._offers: dict[tuple[ProfileTable, int, int], tuple[Offer, ...]] = {}
        self._singles: dict[ProfileTable, dict[int, _Cheapest | None]] = {}

    def plan(self, gpus: Sequence[OpenGpu]) -> NodePlan | None:
        """The cheapest plan on these GPUs of one node, or None when not all devices fit.

        ``gpus`` are those that the Pod accepts, in order of index.
        """
        if self.devices == 1:
            return self._plan_one(gpus)
        if any(kind.count >= GUARD for kind in self.kinds):
            return None
        if not self._within_bounds(gpus):
            return None
        steps = 1
        for kind in self.kinds:
            steps *= kind.count + 1
        if steps > _STEPS_MAX:
            return self._plan_in_turn(gpus)
        ways = self._ways(gpus, self._wanted)
        found = ways.get(0)
        return None if found is None else self._finish(gpus, found)

    def found(self, gpus: Sequence[OpenGpu]) -> int:
        """The most devices of the request that these GPUs hold together.

        Exact where all devices are of one kind or few; otherwise what the planner found.
        """
        most = [self._most(kind, gpus) for kind in self.kinds]
        if len(self.kinds) == 1 and not self.upsize:
            return min(most[0], self.kinds[0].count)
        counts = [min(m, kind.count) for m, kind in zip(most, self.kinds, strict=True)]
        steps = 1
        for count in counts:
            steps *= count + 1
        if steps > _STEPS_MAX:
            return max(counts)
        wanted = sum(count << (FIELD * i) for i, count in enumerate(counts))
        ways = self._ways(gpus, wanted)
        return sum(counts) - min(total(remaining, len(counts)) for remaining in ways)

    def offers(self, gpu: OpenGpu) -> tuple[Offer, ...]:
        """What one GPU can take of the request, at least one device each."""
        numa = gpu.capability.numa if self._bound else -1
        key = (gpu.table, gpu.state, numa)
        known = self._offers.get(key)
        if known is None:
            if len(self._offers) >= _OFFERS_MAX:
                self._offers.clear()
                self._singles.clear()
            known = self._offers[key] = tuple(self._list_offers(gpu.table, gpu.state, numa))
        return known

    def shapes(self, kind: Kind, table: ProfileTable) -> tuple[Shape, ...]:
        """Profiles of a table that a kind may become: the smallest, or all with ``upsize``."""
        shapes = table.satisfying(kind.demand)
        return shapes if self.upsize else shapes[:1]

    def _plan_one(self, gpus: Sequence[OpenGpu]) -> NodePlan | None:
        best: _Cheapest | None = None
        chosen: OpenGpu | None = None
        table: ProfileTable | None = None
        kept: dict[int, _Cheapest | None] = {}
        for gpu in gpus:
            if gpu.table is not table:
                table = gpu.table
                kept = {} if self._bound else self._singles.setdefault(table, {})
            try:
                found = kept[gpu.state]
            except KeyError:
                found = kept[gpu.state] = self._cheapest(gpu)
            if found is not best and found is not None and (best is None or found[0] < best[0]):
                best, chosen = found, gpu
        if chosen is None or best is None:
            return None
        paid, offer = best
        ((index, placement),) = offer.packing.placed
        pick = Pick(0, chosen.capability, chosen.table.shapes[index], placement)
        return NodePlan(self.rule.node_rank(gpus, *paid), (pick,))

    def _cheapest(self, gpu: OpenGpu) -> _Cheapest | None:
        """The best place for one device on one GPU; kept per state, as most GPUs repeat."""
        found = [((offer.level, offer.cost), offer) for offer in self.offers(gpu)]
        return min(found, key=lambda item: item[0], default=None)

    def _within_bounds(self, gpus: Sequence[OpenGpu]) -> bool:
        return all(self._most(kind, gpus) >= kind.count for kind in self.kinds)

    def _most(self, kind: Kind, gpus: Sequence[OpenGpu]) -> int:
        """A bound on the devices of a kind, exact while only one profile may be taken."""
        return sum(
            gpu.table.most(gpu.state, shape)
            for gpu in gpus
            if kind.numa is None or gpu.capability.numa == kind.numa
            for shape in self.shapes(kind, gpu.table)
        )

    def _ways(self, gpus: Sequence[OpenGpu], wanted: int) -> dict[int, _Way]:
        """For each reachable remainder of the wanted counts, the cheapest way to leave it."""
        guards = self._guards
        ways = {wanted: _Way(0, 0, None, 0, None)}
        for position, gpu in enumerate(gpus):
            offers = self.offers(gpu)
            if not offers:
                continue
            further = dict(ways)
            for remaining, way in ways.items():
                if not remaining:
                    continue
                for offer in offers:
                    if ((remaining | guards) - offer.vector) & guards != guards:
                        continue
                    left = remaining - offer.vector
                    level = way.level + offer.level
                    cost = way.cost + (offer.cost << 16) + position * offer.devices
                    known = further.get(left)
                    if known is None or (level, cost) < (known.level, known.cost):
                        further[left] = _Way(level, cost, way, position, offer)
            ways = further
        return ways

    def _finish(self, gpus: Sequence[OpenGpu], way: _Way) -> NodePlan:
        picks: list[Pick] = []
        rank = self.rule.node_rank(gpus, way.level, way.cost >> 16)
        step: _Way | None = way
        while step is not None and step.offer is not None:
            gpu = gpus[step.position]
            picks.extend(_picks(gpu, step.offer))
            step = step.before
        return NodePlan(rank, tuple(sorted(picks, key=_pick_order)))

    def _plan_in_turn(self, gpus: Sequence[OpenGpu]) -> NodePlan | None:
        """Largest kind first, each planned exactly on what the ones before it left."""
        left: list[OpenGpu] = list(gpus)
        picks: list[Pick] = []
        level = cost = 0
        sizes = [self._size(kind, gpus) for kind in self.kinds]
        for number in sorted(range(len(self.kinds)), key=lambda i: (-sizes[i], i)):
            single = Planner([self.kinds[number]], self.rule, upsize=self.upsize)
            found = single._ways(left, single._wanted).get(0)
            if found is None:
                return None
            level += found.level
            cost += found.cost >> 16
            picks.extend(
                Pick(number, pick.gpu, pick.shape, pick.placement)
                for pick in single._finish(left, found).picks
            )
            left = [_after(gpu, picks) for gpu in gpus]
        return NodePlan(
            self.rule.node_rank(gpus, level, cost), tuple(sorted(picks, key=_pick_order))
        )

    def _size(self, kind: Kind, gpus: Sequence[OpenGpu]) -> int:
        return max(
            (shape.memory_slices for gpu in gpus for shape in self.shapes(kind, gpu.table)),
            default=0,
        )

    def _list_offers(self, table: ProfileTable, state: int, numa: int) -> Iterator[Offer]:
        choices = [
            [] if kind.numa is not None and kind.numa != numa else list(self.shapes(kind, table))
            for kind in self.kinds
        ]
        slots = [
            (number, level, shape)
            for number, shapes in enumerate(choices)
            for level, shape in enumerate(shapes)
        ]
        limits = [min(self.kinds[n].count, table.most(state, shape)) for n, _, shape in slots]
        best: dict[int, Offer] = {}
        for counts in vectors(
            limits, [s.memory_slices for _, _, s in slots], table.free_memory_slices(state)
        ):
            offer = self._offer(table, state, slots, counts)
            if offer is None:
                continue
            known = best.get(offer.vector)
            if known is None or (offer.level, offer.cost) < (known.level, known.cost):
                best[offer.vector] = offer
        yield from best.values()

    def _offer(
        self,
        table: ProfileTable,
        state: int,
        slots: Sequence[tuple[int, int, Shape]],
        counts: tuple[int, ...],
    ) -> Offer | None:
        wanted = [0] * len(table.shapes)
        vector = level = 0
        by_shape: dict[int, list[int]] = {}
        for count, (number, above, shape) in zip(counts, slots, strict=True):
            wanted[shape.index] += count
            vector += count << (FIELD * number)
            level += above * count
            by_shape.setdefault(shape.index, []).extend([number] * count)
        if ((self._wanted | self._guards) - vector) & self._guards != self._guards:
            return None
        packing = self.rule.pack(table, state, tuple(wanted))
        if packing is None:
            return None
        kinds = tuple(by_shape[index].pop(0) for index, _ in packing.placed)
        cost = self.rule.gpu_cost(table, state, packing)
        return Offer(vector, sum(counts), level, cost, packing, kinds)


@dataclass(frozen=True, slots=True)
class _Way:
    level: int
    cost: int
    before: _Way | None
    position: int
    offer: Offer | None


@dataclass(frozen=True, slots=True)
class _Left:
    capability: GpuCapability
    table: ProfileTable
    state: int
    booked: Booked


def _picks(gpu: OpenGpu, offer: Offer) -> Iterable[Pick]:
    for kind, (index, placement) in zip(offer.kinds, offer.packing.placed, strict=True):
        yield Pick(kind, gpu.capability, gpu.table.shapes[index], placement)


def _pick_order(pick: Pick) -> tuple[int, int, str, Placement]:
    return (pick.kind, pick.gpu.index, pick.gpu.uuid, pick.placement)


def _after(gpu: OpenGpu, picks: Sequence[Pick]) -> OpenGpu:
    state = gpu.state
    for pick in picks:
        if pick.gpu.uuid == gpu.capability.uuid:
            state = gpu.table.taking(state, pick.shape, pick.placement)
    return _Left(gpu.capability, gpu.table, state, gpu.booked)
