"""A dashboard whose map is given, and pages of it through Django's client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from django.utils import translation

from hami_web.dashboard import installed
from tests.access.provider import CLIENT, SECRET, Provider

from .deployed import deployed
from .given import GivenMap
from .proxy import certificate
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


@pytest.fixture(scope="session")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """That of a web process below a path, which people reach over HTTPS and sign in to."""
    folder = tmp_path_factory.mktemp("web")
    policy = folder / "policy.yaml"
    policy.write_text("access: {roleGroups: {viewer: ['*']}}")
    with (
        Provider() as provider,
        deployed(
            folder,
            HAMI_OIDC_ISSUER=provider.issuer,
            HAMI_OIDC_CLIENT_ID=CLIENT,
            HAMI_OIDC_CLIENT_SECRET=SECRET,
            HAMI_POLICY_FILE=str(policy),
        ) as port,
    ):
        yield port


@pytest.fixture(scope="session")
def tls_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and certificate of the proxies before it."""
    return certificate(tmp_path_factory.mktemp("tls"))
