"""Make and end API tokens, and find who sent one."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final

from django.db import transaction

from hami_web.access.audit import Action, Actor, record
from hami_web.access.caller import Caller, Source
from hami_web.access.errors import InvalidCredentials
from hami_web.access.models import ApiToken, User
from hami_web.access.people import caller_of_user, scope_of
from hami_web.access.policy import access_policy
from hami_web.access.roles import Role, least

PREFIX: Final = "hami_"
"""Lets scanners of source code find tokens that were committed by mistake."""
LIFETIME: Final = timedelta(days=90)
_TOKEN: Final = f"SELECT * FROM {ApiToken._meta.db_table} WHERE digest = %s"  # noqa: S608, SLF001  # Django's documented name
_OWNER: Final = f"SELECT * FROM {User._meta.db_table} WHERE id = %s"  # noqa: S608, SLF001  # Django's documented name


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """What a token gives. ``namespaces``: None as owner and role have it, ``["*"]`` all."""

    role: Role = Role.VIEWER
    namespaces: Sequence[str] | None = None
    lifetime: timedelta = LIFETIME
    owner: User | None = None


def create_token(name: str, grant: TokenGrant, *, by: Actor) -> str:
    """Store a new token's digest and return the token, which cannot be read again.

    Raises IntegrityError where the name is taken.
    """
    token = PREFIX + secrets.token_urlsafe(32)
    now = datetime.now(UTC)
    row = ApiToken(
        name=name,
        digest=_digest(token),
        role=grant.role,
        namespaces=None if grant.namespaces is None else sorted(grant.namespaces),
        owner=grant.owner,
        created_at=now,
        expires_at=now + grant.lifetime,
    )
    with transaction.atomic():
        row.save(force_insert=True)
        record(by, Action("token.create", "token", name, after=_shown(row)))
    return token


def revoke_token(name: str, *, by: Actor) -> bool:
    """End a token at once; False where there is none of that name."""
    with transaction.atomic():
        row = ApiToken.objects.select_related("owner").filter(name=name).first()
        if row is None:
            return False
        before = _shown(row)
        row.delete()
        record(by, Action("token.revoke", "token", name, before=before))
    return True


def caller_of_token(token: str) -> Caller:
    """Whose token it is and what it gives now; one query, and one for its owner if it has one.

    Raises InvalidCredentials. Every call of the API begins with this, and composing a query takes
    longer than the query: so these are written out.
    """
    found = list(ApiToken.objects.raw(_TOKEN, [_digest(token)]))
    if not found:
        raise InvalidCredentials("this token is not known")
    row = found[0]
    if row.expires_at <= datetime.now(UTC):
        raise InvalidCredentials(f"the token {row.name} expired at {row.expires_at:%F %T} UTC")
    role = Role(row.role)
    given = None if row.namespaces is None else scope_of(row.namespaces)
    if row.owner_id is None:
        scope = access_policy().namespaces[role] if row.namespaces is None else given
        return Caller(row.name, Source.TOKEN, role, scope)
    person = User.objects.raw(_OWNER, [row.owner_id])[0]
    owner = caller_of_user(person)
    if not person.is_active or owner.role is None:
        raise InvalidCredentials(f"the owner of the token {row.name} may not sign in any more")
    scope = owner.namespaces
    if row.namespaces is not None and given is not None:
        scope = given if scope is None else scope & given
    return Caller(
        f"{owner.name} ({row.name})", Source.TOKEN, least((role, owner.role)), scope, owner.reviewed
    )


def _digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def _shown(row: ApiToken) -> dict[str, object]:
    return {
        "role": str(row.role),
        "namespaces": row.namespaces,
        "owner": row.owner.username if row.owner else None,
        "expires_at": row.expires_at.isoformat(),
    }
