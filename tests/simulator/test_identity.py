"""Tokens, reviews, rules and the audit of who did what."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hami_web.simulator.api import AuditEntry
from hami_web.simulator.client import ApiClient, ApiError, Endpoint
from hami_web.simulator.documents import JsonObject
from hami_web.simulator.identity import AccessRule, Identities, User
from hami_web.simulator.server import SimulatedApiServer

AGENT = User("hami-node-agent", ("agents",), extra=(("node", ("n1",)),))
RULES = [
    AccessRule("agents", ("list", "patch"), "pods"),
    AccessRule("hami-node-agent", ("get",), "leases", "coordination.k8s.io", "hami"),
]


@pytest.fixture
def guarded() -> Iterator[SimulatedApiServer]:
    tokens = {"agent": AGENT, "admin": User("admin", ("system:masters",))}
    with SimulatedApiServer(identities=Identities(tokens, list(RULES), enforce=True)) as running:
        yield running


@pytest.fixture
def agent(guarded: SimulatedApiServer) -> Iterator[ApiClient]:
    client = ApiClient(Endpoint(guarded.url, "agent"))
    yield client
    client.close()


@pytest.fixture
def admin(guarded: SimulatedApiServer) -> Iterator[ApiClient]:
    client = ApiClient(Endpoint(guarded.url, "admin"))
    yield client
    client.close()


def allowed(admin: ApiClient, **attributes: str) -> bool:
    review: JsonObject = {"spec": {"user": AGENT.name, "resourceAttributes": attributes}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return admin.create(path, review)["status"]["allowed"]


def test_rules_are_enforced(agent: ApiClient, admin: ApiClient) -> None:
    assert agent.get("/api/v1/pods")["items"] == []
    with pytest.raises(ApiError, match='User "hami-node-agent" cannot list resource "nodes"') as no:
        agent.get("/api/v1/nodes")
    assert (no.value.code, no.value.reason) == (403, "Forbidden")
    assert admin.get("/api/v1/nodes")["items"] == []


def test_a_rule_for_an_object_is_none_for_its_subresource(agent: ApiClient) -> None:
    with pytest.raises(ApiError, match="pods/status"):
        agent.patch("/api/v1/namespaces/default/pods/a/status", {})


def test_the_audit_says_who_did_what(guarded: SimulatedApiServer, agent: ApiClient) -> None:
    agent.get("/api/v1/pods")
    with pytest.raises(ApiError):
        agent.delete("/api/v1/namespaces/default/pods/a")
    assert guarded.audit == (
        AuditEntry("hami-node-agent", "list", "", "pods", "", "", 200),
        AuditEntry("hami-node-agent", "delete", "", "pods", "default", "a", 403),
    )


def test_a_token_review_names_the_user(admin: ApiClient) -> None:
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    status = admin.create(path, {"spec": {"token": "agent"}})["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == "hami-node-agent"
    assert status["user"]["extra"] == {"node": ["n1"]}
    assert admin.create(path, {"spec": {"token": "x"}})["status"]["authenticated"] is False


def test_access_reviews_follow_the_rules(admin: ApiClient) -> None:
    lease = {"verb": "get", "group": "coordination.k8s.io", "resource": "leases"}
    assert allowed(admin, **lease, namespace="hami")
    assert not allowed(admin, **lease, namespace="other")
    assert not allowed(admin, verb="delete", resource="pods")


def test_a_request_without_a_token_is_unauthorized(guarded: SimulatedApiServer) -> None:
    client = ApiClient(Endpoint(guarded.url))
    with pytest.raises(ApiError) as caught:
        client.get("/api/v1/pods")
    client.close()
    assert caught.value.code == 401
