"""API tokens: what they give, to whom, until when."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from hami_web.access.audit import SYSTEM
from hami_web.access.errors import InvalidCredentials
from hami_web.access.models import ApiToken, AuditEntry, User
from hami_web.access.roles import Role
from hami_web.access.tokens import TokenGrant, caller_of_token, create_token, revoke_token

pytestmark = pytest.mark.django_db


def made(name: str = "ci", **grant: object):
    return caller_of_token(create_token(name, TokenGrant(**grant), by=SYSTEM))


def person(role: str = "operator", **more: object) -> User:
    return User.objects.create(username="ann", source="local", role=role, **more)


def test_only_a_digest_is_stored() -> None:
    token = create_token("ci", TokenGrant(), by=SYSTEM)
    assert token.startswith("hami_")
    assert token not in str(list(ApiToken.objects.values()) + list(AuditEntry.objects.values()))


def test_a_token_of_a_service_has_its_role_and_that_roles_namespaces() -> None:
    assert made(role=Role.OPERATOR).namespaces is None
    caller = made("other", role=Role.VIEWER)
    assert (caller.name, caller.role, caller.namespaces) == ("other", Role.VIEWER, frozenset())


def test_its_own_namespaces_replace_those_of_the_role() -> None:
    assert made(role=Role.ADMIN, namespaces=["a"]).namespaces == {"a"}
    assert made("other", namespaces=["*"]).namespaces is None


def test_a_token_of_a_person_gives_no_more_than_they_have() -> None:
    owner = person("operator", namespaces=["a", "b"])
    caller = made(role=Role.ADMIN, namespaces=["b", "c"], owner=owner)
    assert (caller.role, caller.namespaces) == (Role.OPERATOR, {"b"})
    assert made("all", role=Role.ADMIN, namespaces=["*"], owner=owner).namespaces == {"a", "b"}


@pytest.mark.parametrize("change", [{"is_active": False}, {"role": ""}])
def test_a_token_ends_with_its_owners_rights(change: dict[str, object]) -> None:
    token = create_token("ci", TokenGrant(owner=person()), by=SYSTEM)
    assert caller_of_token(token).role is Role.VIEWER
    User.objects.update(**change)
    with pytest.raises(InvalidCredentials, match="owner"):
        caller_of_token(token)


def test_an_expired_token_is_refused_by_name() -> None:
    token = create_token("ci", TokenGrant(lifetime=timedelta(seconds=-1)), by=SYSTEM)
    with pytest.raises(InvalidCredentials, match="ci expired"):
        caller_of_token(token)


def test_making_and_ending_a_token_is_recorded() -> None:
    create_token("ci", TokenGrant(Role.OPERATOR), by=SYSTEM)
    assert revoke_token("ci", by=SYSTEM)
    assert not revoke_token("ci", by=SYSTEM)
    made_entry, ended = AuditEntry.objects.order_by("id")
    assert (made_entry.verb, made_entry.name, ended.verb) == ("token.create", "ci", "token.revoke")
    assert made_entry.after["role"] == ended.before["role"] == "operator"


def test_the_command_says_what_a_token_sees(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("api_token", "ci")
    out, err = capsys.readouterr()
    assert caller_of_token(out.strip()).namespaces == frozenset()
    assert "viewer, sees no namespace" in err
    call_command("api_token", "all", "--role", "operator", "--namespace", "a", "--namespace", "b")
    assert "operator, sees a, b" in capsys.readouterr().err


def test_the_command_refuses_an_owner_that_is_not_there() -> None:
    with pytest.raises(CommandError, match="nobody"):
        call_command("api_token", "ci", "--owner", "nobody")
