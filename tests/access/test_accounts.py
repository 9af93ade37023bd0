"""The first admin and everyone after: commands, passwords, what is recorded."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command

from hami_web.access.audit import SYSTEM
from hami_web.access.models import AuditEntry, SignInFailure, User
from hami_web.access.tokens import TokenGrant, create_token
from hami_web.access.upkeep import prune_access

from .conftest import PASSWORD

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch, settings) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    settings.ADMIN_PASSWORD = ""


@pytest.fixture
def secret(tmp_path: Path) -> str:
    path = tmp_path / "password"
    path.write_text(f"{PASSWORD}\n")
    return str(path)


def test_the_first_admin_has_the_password_that_was_given_and_no_other(secret: str) -> None:
    call_command("create_admin", "--password-file", secret)
    user = User.objects.get()
    assert (user.username, user.role, user.check_password(PASSWORD)) == ("admin", "admin", True)
    entry = AuditEntry.objects.get()
    assert (entry.verb, entry.name, entry.source) == ("person.create", "admin", "command")
    assert PASSWORD not in str(vars(entry))


def test_without_a_password_there_is_no_admin() -> None:
    with pytest.raises(CommandError, match="--password-stdin"):
        call_command("create_admin")
    assert not User.objects.exists()


@pytest.mark.parametrize(
    ("password", "why"),
    [
        ("short", "12 characters"),
        ("", "12 characters"),
        ("q1w2e3r4t5y6", "common"),
        ("840315972046", "numeric"),
        ("administrator1", "similar"),
    ],
)
def test_a_weak_password_is_refused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, password: str, why: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{password}\n"))
    with pytest.raises(CommandError, match=why):
        call_command("create_admin", "administrator", "--password-stdin")
    assert not User.objects.exists()


def test_the_environment_can_hold_the_password(settings) -> None:
    settings.ADMIN_PASSWORD = PASSWORD
    call_command("create_admin", "root")
    assert User.objects.get().check_password(PASSWORD)


def test_a_deployment_may_run_the_command_each_time(secret: str) -> None:
    for _ in range(2):
        call_command("create_admin", "--if-none", "--password-file", secret)
    assert User.objects.count() == 1
    with pytest.raises(CommandError, match="taken"):
        call_command("create_admin", "Admin", "--password-file", secret)


@pytest.mark.parametrize("name", ["", "oidc:ann", "a b", "@x", "é", "a" * 151])
def test_a_name_that_could_be_anothers_is_refused(secret: str, name: str) -> None:
    with pytest.raises(CommandError, match="name"):
        call_command("create_admin", name, "--password-file", secret)


def test_a_person_is_made_and_changed_and_every_step_is_recorded(secret: str) -> None:
    call_command("person", "ann", "--role", "viewer", "--password-file", secret)
    call_command("person", "ann", "--role", "operator", "--namespace", "b", "--namespace", "a")
    call_command("person", "ann", "--disable")
    user = User.objects.get()
    assert (user.role, user.namespaces, user.is_active) == ("operator", ["a", "b"], False)
    call_command("person", "ann", "--remove")
    rows = AuditEntry.objects.order_by("id")
    assert [row.verb for row in rows] == [
        "person.create",
        "person.change",
        "person.change",
        "person.remove",
    ]
    assert (rows[1].before["role"], rows[1].after["role"]) == ("viewer", "operator")
    assert rows[1].after["namespaces"] == ["a", "b"]


def test_removing_a_person_ends_their_tokens(secret: str) -> None:
    call_command("person", "ann", "--role", "viewer", "--password-file", secret)
    create_token("ci", TokenGrant(owner=User.objects.get()), by=SYSTEM)
    call_command("person", "ann", "--remove")
    assert not User.objects.exists()


def test_people_of_a_provider_keep_the_providers_role() -> None:
    User.objects.create(username="oidc:ann", source="oidc", subject="iss ann")
    with pytest.raises(CommandError, match="provider"):
        call_command("person", "oidc:ann", "--role", "admin")
    call_command("person", "oidc:ann", "--disable")
    assert not User.objects.get().is_active


@pytest.mark.parametrize("option", ["--remove", "--disable", "--enable"])
def test_nobody_is_changed_who_is_not_there(option: str) -> None:
    with pytest.raises(CommandError, match="no person"):
        call_command("person", "ann", option)


def test_a_new_person_needs_a_role() -> None:
    with pytest.raises(CommandError, match="--role"):
        call_command("person", "ann")


def test_what_is_over_is_deleted_and_nothing_else() -> None:
    now = datetime.now(UTC)
    for key, at in (("old", now - timedelta(days=2)), ("new", now)):
        SignInFailure.objects.create(key=key, count=1, last_at=at)
        Session.objects.create(session_key=key, session_data="", expire_date=at + timedelta(days=1))
    assert prune_access(now, audit_days=0) == 2
    assert [row.key for row in SignInFailure.objects.all()] == ["new"]
    assert [row.session_key for row in Session.objects.all()] == ["new"]
