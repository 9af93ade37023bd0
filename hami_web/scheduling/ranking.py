"""The indexes of the requests asked lately, each request in its canonical form."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Protocol

from hami_web.core.hami import HamiRule
from hami_web.core.policies import Rule
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.request import Demand, PodRequest
from hami_web.core.selection import Selection, unsatisfied
from hami_web.core.tables import ProfileTable
from hami_web.scheduling.index import RankIndex

_INDEXES_MAX: Final = 24
"""Kept indexes; each costs about 500 bytes a node, and 60 for each further device."""
_DEMANDS_MAX: Final = 4096


class Tables(Protocol):
    """The tables of all models in the cluster; only ever more."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[ProfileTable]: ...


class Rankings:
    """One index per distinct request, the least lately used given up. Not synchronized.

    Demands that the same profiles satisfy on every model are one demand here: 4,000 and 4,500 MiB
    share an index where both mean the smallest profile.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._known_tables = 0
        self._indexes: OrderedDict[tuple[PodRequest, Rule | HamiRule, bool], RankIndex] = (
            OrderedDict()
        )
        self._canonical: dict[Demand, Demand] = {}
        self._first: dict[tuple[object, ...], Demand] = {}
        self._last: tuple[PodRequest, SchedulingPolicy, RankIndex] | None = None

    def index(self, request: PodRequest, policy: SchedulingPolicy) -> RankIndex:
        """The index of a request under the cluster's policy and the Pod's own wishes.

        Raises :class:`InvalidRequest` for a wish that the policy does not know.
        """
        same_tables = len(self._tables) == self._known_tables
        if self._last is not None and same_tables:
            asked, under, index = self._last
            # Pods come in bursts of equals, which the parser reads as one.
            if under is policy and (asked is request or asked == request):
                return index
        index = self._find(request, policy)
        self._last = (request, policy, index)
        return index

    def _find(self, request: PodRequest, policy: SchedulingPolicy) -> RankIndex:
        rule = policy.rule_for(request)
        request = self.canonical(request)
        key = (request, rule, policy.upsize)
        index = self._indexes.get(key)
        if index is None:
            index = RankIndex(Selection(request, rule, upsize=policy.upsize))
            self._indexes[key] = index
            if len(self._indexes) > _INDEXES_MAX:
                self._indexes.popitem(last=False)
        else:
            self._indexes.move_to_end(key)
        return index

    def canonical(self, request: PodRequest) -> PodRequest:
        """The request with one demand for all that mean the same profiles here."""
        if len(self._tables) != self._known_tables or len(self._canonical) > _DEMANDS_MAX:
            self._known_tables = len(self._tables)
            self._canonical.clear()
            self._first.clear()
        demands = [self._canonical_demand(container.demand) for container in request.containers]
        if all(c.demand is d for c, d in zip(request.containers, demands, strict=True)):
            return request
        containers = tuple(
            replace(container, demand=demand)
            for container, demand in zip(request.containers, demands, strict=True)
        )
        return replace(request, containers=containers)

    def _canonical_demand(self, demand: Demand) -> Demand:
        known = self._canonical.get(demand)
        if known is None:
            meaning = tuple(
                tuple(shape.index for shape in table.satisfying(demand))
                or unsatisfied(demand, table)
                for table in self._tables
            )
            known = self._canonical[demand] = self._first.setdefault(meaning, demand)
        return known
