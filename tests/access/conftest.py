"""A cluster that knows a few people, a dashboard with a map, and browsers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from django.utils import translation

from hami_web.access import identity, visibility
from hami_web.access.models import User
from hami_web.access.pacing import TokenBuckets
from hami_web.access.reviewer import close_reviewer
from hami_web.dashboard import installed
from hami_web.simulator.identity import AccessRule, Identities
from hami_web.simulator.identity import User as KnownUser
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig
from tests.api.conftest import mirror  # noqa: F401  # a fixture
from tests.dashboard.conftest import GivenMap
from tests.dashboard.samples import cluster_map

PASSWORD = "correct horse battery"
POLICY = {"roleGroups": {"viewer": ["*"], "operator": ["gpu-operators"], "admin": ["gpu-admins"]}}
TOKENS = {
    "ours": KnownUser("system:serviceaccount:hami-system:hami-web", ("system:masters",)),
    "ann": KnownUser("ann", ("team-a", "gpu-operators"), uid="1"),
    "root": KnownUser("root", ("gpu-admins", "system:masters")),
    "nobody": KnownUser("nobody"),
}
RULES = [AccessRule("team-a", ("list",), "pods", namespace="team-a")]


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is remembered from another test, and nothing forgiven while one runs."""
    stopped = TokenBuckets(identity.FAILURES_A_MINUTE, clock=lambda: 0.0)
    monkeypatch.setattr(identity, "_failures", stopped)
    visibility._names.clear()
    with translation.override("en"):
        yield
    close_reviewer()


@pytest.fixture
def cluster(settings, tmp_path: Path) -> Iterator[SimulatedApiServer]:
    """An API server that answers reviews only to us, and a policy for its groups."""
    identities = Identities(dict(TOKENS), list(RULES), enforce=True)
    with SimulatedApiServer(identities=identities) as server:
        settings.KUBECONFIG = write_kubeconfig(
            tmp_path / "kubeconfig", server=server.url, token="ours"
        )
        settings.KUBERNETES_LOGIN = True
        settings.ACCESS_POLICY = POLICY
        yield server
        close_reviewer()


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> GivenMap:
    monkeypatch.setattr(installed, "_installed", [])
    live = GivenMap()
    live.show(cluster_map())
    installed.install_map(live)
    return live


@pytest.fixture
def browser() -> Client:
    """One that checks CSRF tokens, as every real one is checked."""
    return Client(headers={"host": "localhost"}, enforce_csrf_checks=True)


@pytest.fixture
def ann(db) -> User:
    user = User(username="ann", source="local", role="operator", namespaces=["team-a"])
    user.set_password(PASSWORD)
    user.save()
    return user


def post(browser: Client, path: str, **fields: str):
    """Send a form as a browser does: with the token of the page it is on."""
    browser.get("/login")
    token = browser.cookies["hami_csrf"].value
    return browser.post(path, {**fields, "csrfmiddlewaretoken": token})


def sign_in(browser: Client, password: str = PASSWORD, username: str = "ann", **more: str):
    return post(browser, "/login", username=username, password=password, **more)
