"""Make, change and remove people of this database; every step is recorded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from hami_web.access.audit import Action, Actor, record
from hami_web.access.caller import Source
from hami_web.access.models import User
from hami_web.access.roles import Role

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9@.+_-]{0,149}")
KIND: Final = "person"


class RefusedAccount(ValueError):
    """What was asked for is not allowed; names the field and what is."""


def create_person(
    name: str,
    password: str,
    role: Role,
    *,
    namespaces: Sequence[str] | None = None,
    by: Actor,
) -> User:
    """Someone who signs in by password. Raises RefusedAccount."""
    if not NAME.fullmatch(name):
        raise RefusedAccount(
            f"name: {name!r} is not allowed; allowed: 1…150 of letters, digits, @.+_-"
        )
    user = User(username=name, source=Source.LOCAL, role=role, namespaces=_sorted(namespaces))
    _set_password(user, password)
    with transaction.atomic():
        if User.objects.filter(username__iexact=name).exists():
            raise RefusedAccount(f"name: {name!r} is taken")
        user.save(force_insert=True)
        record(by, Action("person.create", KIND, name, after=shown(user)))
    return user


def change_person(
    user: User,
    *,
    role: Role | None = None,
    namespaces: Sequence[str] | None = None,
    password: str | None = None,
    active: bool | None = None,
    by: Actor,
) -> None:
    """Change what is given and leave the rest. Raises RefusedAccount.

    A new password or an end of the account ends all sessions of the person.
    """
    before = shown(user)
    if user.source != Source.LOCAL and (role or namespaces is not None or password):
        raise RefusedAccount(
            f"{user.username}: role, namespaces and password are the provider's; "
            "allowed: to end or to allow the account"
        )
    user.role = role or user.role
    user.namespaces = user.namespaces if namespaces is None else _sorted(namespaces)
    user.is_active = user.is_active if active is None else active
    if password is not None:
        _set_password(user, password)
    with transaction.atomic():
        user.save()
        action = Action("person.change", KIND, user.username, before=before, after=shown(user))
        detail = "" if password is None else "with a new password"
        record(by, action, detail=detail)


def remove_person(user: User, *, by: Actor) -> None:
    """The account with its tokens; what they did stays in the audit log."""
    with transaction.atomic():
        record(by, Action("person.remove", KIND, user.username, before=shown(user)))
        user.delete()


def shown(user: User) -> dict[str, object]:
    """What the audit log tells of a person."""
    return {
        "source": str(user.source),
        "role": str(user.role),
        "namespaces": user.namespaces,
        "active": user.is_active,
    }


def _set_password(user: User, password: str) -> None:
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise RefusedAccount(f"password: {' '.join(error.messages)}") from error
    user.set_password(password)


def _sorted(namespaces: Sequence[str] | None) -> list[str] | None:
    return None if namespaces is None else sorted(set(namespaces))
