"""A live map that is given."""

from __future__ import annotations

from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.freshness import Freshness
from hami_web.dashboard.live import LiveMap


class GivenMap(LiveMap):
    """A live map that shows what a test puts into it, without a thread."""

    def __init__(self) -> None:
        super().__init__(lambda _version: self.given, lambda: self.told)
        self.given: ClusterMap | None = None
        self.told = Freshness(2.0)

    def show(self, given: ClusterMap | None, told: Freshness | None = None) -> None:
        self.given = given
        self.told = told or self.told
        self._redraw()
