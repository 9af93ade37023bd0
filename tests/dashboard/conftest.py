"""A dashboard whose map is given, and pages of it through Django's client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client
from django.utils import translation

from hami_web.dashboard import installed
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.freshness import Freshness
from hami_web.dashboard.live import LiveMap

from .samples import cluster_map


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


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> GivenMap:
    monkeypatch.setattr(installed, "_installed", [])
    monkeypatch.setattr(installed, "_notices", [])
    live = GivenMap()
    live.show(cluster_map())
    installed.install_map(live)
    return live


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    """Requests leave their language behind in the thread."""
    with translation.override("en"):
        yield


@pytest.fixture(autouse=True)
def _anonymous_sees_all(settings) -> None:
    """Most of these tests are about pages, not about who may see them."""
    settings.ANONYMOUS_ROLE = "viewer"
    settings.ANONYMOUS_NAMESPACES = ("*",)


@pytest.fixture
def client() -> Client:
    return Client(headers={"host": "localhost"})
