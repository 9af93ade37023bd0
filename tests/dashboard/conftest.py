"""A dashboard whose map is given, and pages of it through Django's client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client
from django.utils import translation

from hami_web.dashboard import installed

from .given import GivenMap
from .samples import cluster_map


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
