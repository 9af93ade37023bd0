"""Who a request is from: headers of proxies, bearer tokens, and how often."""

from __future__ import annotations

import logging
from ipaddress import ip_network

import pytest
from django.test import Client, RequestFactory

from hami_web.access.caller import Caller, Source
from hami_web.access.identity import FAILURES_A_MINUTE, caller_of
from hami_web.access.network import client_address
from hami_web.access.people import caller_of_groups
from hami_web.access.permissions import CallerThrottle
from hami_web.access.roles import Role

from .conftest import POLICY, sign_in

PROXY = "10.1.2.3"


@pytest.fixture
def _behind_proxy(settings) -> None:
    settings.PROXY_ADDRESSES = (ip_network("10.1.0.0/16"), ip_network("fd00::/8"))
    settings.PROXY_USER_HEADER = "X-Forwarded-User"
    settings.PROXY_GROUPS_HEADER = "X-Forwarded-Groups"
    settings.ACCESS_POLICY = POLICY


def caller(peer: str, **headers: str) -> Caller | None:
    return caller_of(RequestFactory().get("/", headers=headers, REMOTE_ADDR=peer))


@pytest.mark.usefixtures("_behind_proxy")
@pytest.mark.parametrize("peer", [PROXY, "fd00::7", "::ffff:10.1.2.3"])
def test_an_allowed_proxy_says_who_it_is(peer: str) -> None:
    headers = {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "x, gpu-operators"}
    found = caller(peer, **headers)
    assert (found.name, found.source, found.role) == ("ann", Source.PROXY, Role.OPERATOR)


@pytest.mark.usefixtures("_behind_proxy")
@pytest.mark.parametrize("peer", ["127.0.0.1", "10.2.0.1", "not an address", "fe80::1"])
def test_anyone_elses_header_is_ignored_and_logged(peer: str, caplog) -> None:
    with caplog.at_level(logging.WARNING):
        assert caller(peer, **{"X-Forwarded-User": "root"}) is None
    assert "without being an allowed proxy" in caplog.text


def test_the_header_is_nothing_while_it_is_not_switched_on(settings) -> None:
    settings.PROXY_ADDRESSES = (ip_network("10.1.0.0/16"),)
    assert caller(PROXY, **{"X-Forwarded-User": "root"}) is None


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        (PROXY, "8.8.8.8", "8.8.8.8"),
        (PROXY, "1.1.1.1, 8.8.8.8, 10.1.9.9", "8.8.8.8"),
        (PROXY, "nonsense", PROXY),
        (PROXY, "", PROXY),
        ("9.9.9.9", "8.8.8.8", "9.9.9.9"),
    ],
)
@pytest.mark.usefixtures("_behind_proxy")
def test_an_address_is_believed_as_far_as_allowed_proxies_tell_it(
    peer: str, forwarded: str, address: str
) -> None:
    request = RequestFactory().get("/", headers={"X-Forwarded-For": forwarded}, REMOTE_ADDR=peer)
    assert client_address(request) == address


def test_only_an_allowed_proxy_tells_the_scheme(settings, client: Client) -> None:
    settings.SECURE_SSL_REDIRECT = True
    settings.PROXY_ADDRESSES = (ip_network(PROXY),)
    told = {"host": "localhost", "x-forwarded-proto": "https"}
    assert client.get("/login", headers=told).status_code == 301
    assert client.get("/login", headers=told, REMOTE_ADDR=PROXY).status_code == 200


def test_groups_that_only_the_api_server_gives_are_taken_from_nobody_else(settings) -> None:
    settings.ACCESS_POLICY = {"roleGroups": {"admin": ["system:masters"]}}
    settings.REVIEWED_SOURCES = ("proxy",)
    settings.KUBERNETES_NAME_PREFIX = "oidc:"
    found = caller_of_groups("ann", ["system:masters", "team-a"], Source.PROXY)
    assert found.role is None
    assert (found.reviewed.name, found.reviewed.groups) == ("oidc:ann", ("oidc:team-a",))
    assert caller_of_groups("system:admin", [], Source.PROXY).reviewed is None


@pytest.mark.django_db
def test_wrong_tokens_are_never_nobody(settings) -> None:
    settings.ANONYMOUS_ROLE, settings.ANONYMOUS_NAMESPACES = "viewer", ("*",)
    client = Client(headers={"host": "localhost"})
    assert client.get("/api/v1/nodes").status_code == 200
    wrong = {"authorization": "Bearer hami_wrong"}
    assert client.get("/api/v1/nodes", headers=wrong).status_code == 401
    assert client.get("/events", headers=wrong).status_code == 401


@pytest.mark.django_db
def test_an_address_with_too_many_wrong_tokens_has_to_wait() -> None:
    client = Client(headers={"host": "localhost"})
    wrong = {"authorization": "Bearer hami_wrong"}
    codes = [
        client.get("/api/v1/nodes", headers=wrong).status_code for _ in range(FAILURES_A_MINUTE)
    ]
    assert set(codes) == {401}
    answer = client.get("/api/v1/nodes", headers=wrong)
    assert (answer.status_code, answer.json()["code"]) == (429, "request.throttled")
    assert int(answer["Retry-After"]) >= 1
    elsewhere = client.get("/api/v1/nodes", headers=wrong, REMOTE_ADDR="10.9.9.9")
    assert elsewhere.status_code == 401


@pytest.mark.django_db
@pytest.mark.usefixtures("cluster")
def test_cluster_tokens_are_accepted_only_where_switched_on(settings) -> None:
    client = Client(headers={"host": "localhost", "authorization": "Bearer ann"})
    assert client.get("/api/v1/nodes").status_code == 200
    settings.KUBERNETES_LOGIN = False
    assert client.get("/api/v1/nodes").status_code == 401


@pytest.mark.django_db
def test_a_cluster_that_is_silent_is_503(cluster) -> None:
    cluster.stop()
    client = Client(headers={"host": "localhost", "authorization": "Bearer ann"})
    answer = client.get("/api/v1/nodes")
    assert (answer.status_code, answer.json()["code"]) == (503, "identity.unavailable")


@pytest.mark.django_db
def test_a_caller_has_so_many_calls_a_minute(settings, monkeypatch) -> None:
    monkeypatch.setattr(CallerThrottle, "_buckets", None)
    settings.API_CALLS_PER_MINUTE = 3.0
    settings.ANONYMOUS_ROLE, settings.ANONYMOUS_NAMESPACES = "viewer", ("*",)
    client = Client(headers={"host": "localhost"})
    codes = [client.get("/api/v1/nodes").status_code for _ in range(4)]
    assert codes == [200, 200, 200, 429]
    assert client.get("/api/v1/nodes", REMOTE_ADDR="10.9.9.9").status_code == 200


@pytest.mark.django_db
@pytest.mark.usefixtures("ann", "live")
def test_a_session_reads_the_api_and_cannot_write_without_a_csrf_token(browser: Client) -> None:
    sign_in(browser)
    assert browser.get("/api/v1/nodes").status_code == 200
    json = {"content_type": "application/json"}
    assert browser.post("/api/v1/nodes", {}, **json).status_code == 403
    token = browser.cookies["hami_csrf"].value
    answer = browser.post("/api/v1/nodes", {}, **json, headers={"x-csrftoken": token})
    assert answer.status_code == 405


def test_every_answer_has_an_id_that_only_proxies_choose(settings, client: Client) -> None:
    settings.PROXY_ADDRESSES = (ip_network(PROXY),)
    chosen = {"host": "localhost", "x-request-id": "abcdef-123456"}
    assert client.get("/login", headers=chosen)["X-Request-Id"] != "abcdef-123456"
    answer = client.get("/login", headers=chosen, REMOTE_ADDR=PROXY)
    assert answer["X-Request-Id"] == "abcdef-123456"
