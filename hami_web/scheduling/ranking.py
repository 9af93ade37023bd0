"""The indexes of the requests asked lately, each request in its canonical form."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from hami_web.core.hami import HamiRule
from hami_web.core.policies import Rule
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.request import PodRequest
from hami_web.core.selection import Selection
from hami_web.scheduling.index import RankIndex

_INDEXES_MAX: Final = 24
"""Kept indexes; each costs about 200 bytes a node."""


class Rankings:
    """One index per distinct request, the least lately used given up. Not synchronized."""

    def __init__(self) -> None:
        self._indexes: OrderedDict[tuple[PodRequest, Rule | HamiRule, bool], RankIndex] = (
            OrderedDict()
        )

    def index(self, request: PodRequest, policy: SchedulingPolicy) -> RankIndex:
        """The index of a request under the cluster's policy and the Pod's own wishes.

        Raises :class:`InvalidRequest` for a wish that the policy does not know.
        """
        rule = policy.rule_for(request)
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
