"""Every address, every role: nobody gets what their role does not allow, and all get what it does.

Addresses are read from the resolver, so that a new one without a declared verb fails here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.views import APIView

from hami_web.access.audit import SYSTEM
from hami_web.access.declared import declaration_of
from hami_web.access.roles import Role, Verb
from hami_web.access.tokens import TokenGrant, create_token
from hami_web.api.listing import ListView

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
OPEN = {
    "api/docs/",
    "api/schema/",
    "healthz",
    "language",
    "login",
    "logout",
    "oidc/callback",
    "oidc/login",
    "readyz",
}
"""All that may be asked without being anyone. Nothing of the cluster or of people is behind it."""
BODY = {"content_type": "application/json"}


def addresses(resolver: URLResolver | None = None, before: str = "") -> Iterator[tuple[str, Any]]:
    for item in (resolver or get_resolver()).url_patterns:
        route = before + str(item.pattern)
        if isinstance(item, URLPattern):
            yield route, item.callback
        else:
            yield from addresses(item, route)


ADDRESSES = dict(addresses())


def methods(view: Any) -> list[str]:
    owner = getattr(view, "cls", None)
    if owner is None:
        return ["GET", "POST"]
    return [name for name in METHODS if hasattr(owner, name.lower())]


CALLS = [
    (route, method)
    for route, view in sorted(ADDRESSES.items())
    for method in methods(view)
    if route not in OPEN
]


def concrete(route: str) -> str:
    """An address of the route, with names that nothing has."""
    return "/" + re.sub(r"<(?:(\w+):)?\w+>", lambda m: "7" if m[1] == "int" else "no-such", route)


@pytest.fixture
def _ready(live, mirror, settings, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    # Writes that get as far as the cluster find none.
    settings.KUBECONFIG = tmp_path / "none"


def caller_of_role(role: Role | None, *namespaces: str) -> Client:
    headers = {"host": "localhost"}
    if role is not None:
        grant = TokenGrant(role, namespaces or None)
        token = create_token(f"{role} {namespaces}", grant, by=SYSTEM)
        headers["authorization"] = f"Bearer {token}"
    return Client(headers=headers, raise_request_exception=True)


def test_every_address_declares_what_it_needs() -> None:
    silent = [
        f"{method} {route}"
        for route, view in ADDRESSES.items()
        for method in methods(view)
        if declaration_of(view, method) is None
    ]
    assert silent == []


def test_what_is_open_to_everyone_is_listed_here() -> None:
    found = {
        route
        for route, view in ADDRESSES.items()
        if any((d := declaration_of(view, m)) and d.verb is None for m in methods(view))
    }
    assert found == OPEN


def test_reading_needs_no_more_than_a_viewer_except_for_the_audit_log_and_people() -> None:
    for route, method in CALLS:
        declared = declaration_of(ADDRESSES[route], method)
        changes = declared.verb in (Verb.CORDON, Verb.ACKNOWLEDGE, Verb.CHECK, Verb.HAND_OVER)
        if method == "GET" and not changes and "audit" not in route and "tokens" not in route:
            assert declared.verb is Verb.READ or Role.VIEWER.may(declared.verb), route


@pytest.mark.django_db
@pytest.mark.usefixtures("_ready")
def test_nothing_is_changed_by_a_get() -> None:
    admin = caller_of_role(Role.ADMIN, "*")
    for route, method in CALLS:
        declared = declaration_of(ADDRESSES[route], method)
        if method == "GET" and declared.verb in (Verb.CORDON, Verb.ACKNOWLEDGE, Verb.CHECK):
            assert admin.get(concrete(route)).status_code == 405, route


def test_no_view_of_the_api_has_permissions_of_its_own() -> None:
    for route, view in ADDRESSES.items():
        owner = getattr(view, "cls", None)
        if owner is not None and route not in OPEN:
            assert owner.permission_classes == APIView.permission_classes, route
            assert owner.authentication_classes == APIView.authentication_classes, route
            assert owner.throttle_classes == APIView.throttle_classes, route


def test_lists_that_name_a_namespace_are_restricted_by_it() -> None:
    for route, view in ADDRESSES.items():
        owner = getattr(view, "cls", None)
        if owner is not None and issubclass(owner, ListView):
            fields = set(owner.serializer_class().fields)
            if fields & {"namespace", "pod", "pod_uid"}:
                assert owner.namespace_column, route


@pytest.mark.django_db
@pytest.mark.usefixtures("_ready")
@pytest.mark.parametrize(("route", "method"), CALLS, ids=[f"{m} {r}" for r, m in CALLS])
def test_an_address_is_refused_exactly_to_the_roles_below_its_verb(route: str, method: str) -> None:
    verb = declaration_of(ADDRESSES[route], method).verb
    for role in (None, *Role):
        client = caller_of_role(role, "*")
        answer = client.generic(method, concrete(route), "{}", **BODY)
        sent_away = answer.status_code == 302 and answer["Location"].startswith("/login?")
        refused = sent_away or answer.status_code in (401, 403)
        allowed = role is not None and role.may(verb)
        assert refused != allowed, (role, answer.status_code, answer.content[:200])


@pytest.mark.django_db
@pytest.mark.usefixtures("_ready")
@pytest.mark.parametrize("namespace", ["team", "other", "no-such"])
@pytest.mark.parametrize(("route", "method"), [(r, m) for r, m in CALLS if "<str:namespace>" in r])
def test_an_address_in_a_namespace_answers_only_those_who_see_it(
    route: str, method: str, namespace: str
) -> None:
    path = concrete(route.replace("<str:namespace>", namespace))
    verb = declaration_of(ADDRESSES[route], method).verb
    for seen, role in product(((), ("team",), ("team", "other"), ("*",)), Role):
        client = caller_of_role(role, *(seen or ("nothing",)))
        answer = client.generic(method, path, "{}", **BODY)
        allowed = role.may(verb) and (namespace in seen or "*" in seen)
        assert (answer.status_code == 403) != allowed, (seen, role, answer.status_code)
