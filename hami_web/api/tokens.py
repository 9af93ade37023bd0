"""Make API tokens, and find who sent one."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from django.utils.crypto import constant_time_compare
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from hami_web.api.models import ApiToken

if TYPE_CHECKING:
    # rest_framework.views imports this module, by the settings.
    from rest_framework.views import APIView

PREFIX = "hami_"
"""Lets scanners of source code find tokens that were committed by mistake."""


def create_token(name: str, lifetime: timedelta) -> str:
    """Store a new token's digest and return the token, which cannot be read again."""
    token = PREFIX + secrets.token_urlsafe(32)
    now = datetime.now(UTC)
    ApiToken.objects.create(
        name=name, digest=_digest(token), created_at=now, expires_at=now + lifetime
    )
    return token


class BearerToken(BaseAuthentication):
    """``Authorization: Bearer hami_…``; sets ``request.auth``, there are no users."""

    def authenticate(self, request: Request) -> tuple[None, ApiToken] | None:
        """The token's row; None without the header, so that the answer is 401."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return None
        digest = _digest(token.strip())
        row = ApiToken.objects.filter(digest=digest).first()
        if row is None or not constant_time_compare(row.digest, digest):
            raise AuthenticationFailed("this token is not known")
        if row.expires_at <= datetime.now(UTC):
            raise AuthenticationFailed(
                f"the token {row.name} expired at {row.expires_at:%F %T} UTC"
            )
        return (None, row)

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002
        """What a 401 asks for."""
        return 'Bearer realm="hami-web"'


class HasToken(BasePermission):
    """Every token may read everything; nothing can be written here."""

    def has_permission(self, request: Request, view: APIView) -> bool:  # noqa: ARG002
        """Whether a valid token came with the request."""
        return isinstance(request.auth, ApiToken)


def _digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()
