"""Sign-in by an OpenID Connect provider: authorization code with PKCE, state and nonce.

The library speaks the protocol; here are the provider's own description instead of a list of
addresses, the checks of a token's issuer and audience, and people by the provider's lasting name.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import jwt
import requests
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import SuspiciousOperation
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views import View
from mozilla_django_oidc.auth import OIDCAuthenticationBackend
from mozilla_django_oidc.utils import import_from_settings
from mozilla_django_oidc.views import (
    OIDCAuthenticationCallbackView,
    OIDCAuthenticationRequestView,
)

from hami_web.access.caller import Source
from hami_web.access.errors import IdentityUnavailable
from hami_web.access.expiring import ExpiringAnswers
from hami_web.access.models import NAME_MAX, User
from hami_web.access.people import OIDC_PREFIX
from hami_web.access.refusals import plain_refusal
from hami_web.access.sessions import begin_user_session, refuse_sign_in

logger = logging.getLogger(__name__)

DESCRIPTION_S: Final = 3600.0
GROUPS_MAX: Final = 1000
STATES: Final = "oidc_states"
"""Where the library keeps the sign-ins that began in a session."""
_ADDRESSES: Final = {
    "OIDC_OP_AUTHORIZATION_ENDPOINT": "authorization_endpoint",
    "OIDC_OP_TOKEN_ENDPOINT": "token_endpoint",
    "OIDC_OP_USER_ENDPOINT": "userinfo_endpoint",
    "OIDC_OP_JWKS_ENDPOINT": "jwks_uri",
}
_REQUIRED: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_described: ExpiringAnswers[str, Mapping[str, Any]] = ExpiringAnswers(4)


def provider() -> Mapping[str, Any]:
    """What the issuer says of itself, read once an hour. Raises IdentityUnavailable."""
    issuer = settings.OIDC_ISSUER
    known = _described.get(issuer)
    if known is not None:
        return known[0]
    try:
        answer = requests.get(
            f"{issuer}/.well-known/openid-configuration", timeout=settings.OIDC_TIMEOUT
        )
        answer.raise_for_status()
        found = answer.json()
        whole = all(isinstance(found[name], str) for name in _REQUIRED)
    except (requests.RequestException, ValueError, KeyError, TypeError) as error:
        raise IdentityUnavailable(f"{issuer}: its description cannot be read: {error}") from error
    if not whole or str(found.get("issuer", "")).rstrip("/") != issuer:
        raise IdentityUnavailable(f"{issuer}: its description is of {found.get('issuer')!r}")
    return _described.put(issuer, found, DESCRIPTION_S)


def setting(name: str, *default: Any) -> Any:
    """A setting of the library: an address of the provider's, or one of ours."""
    if name in _ADDRESSES:
        return provider().get(_ADDRESSES[name])
    if name == "OIDC_TOKEN_USE_BASIC_AUTH":
        ways = provider().get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        return "client_secret_post" not in ways
    return import_from_settings(name, *default)


class OidcBackend(OIDCAuthenticationBackend):  # type: ignore[misc]  # untyped
    """Finds the person of a code that the provider gave, or makes one."""

    get_settings = staticmethod(setting)

    def __init__(self) -> None:
        # Without the library's own, which asks the provider: sessions outlive its absence.
        self.UserModel = get_user_model()

    def authenticate(self, request: HttpRequest | None, **kwargs: Any) -> User | None:
        """The person; None where the provider, its answer or the account says no."""
        if request is None or "nonce" not in kwargs:
            return None
        try:
            super().__init__()
            user = super().authenticate(request, **kwargs)
        except (
            SuspiciousOperation,
            IdentityUnavailable,
            jwt.PyJWTError,
            requests.RequestException,
            ValueError,
            KeyError,
        ) as error:
            logger.warning("a sign-in by OIDC failed: %s", error)
            return None
        return user if isinstance(user, User) and user.is_active else None

    def verify_token(self, token: str, **kwargs: Any) -> dict[str, Any]:
        """Signature, nonce and times as the library checks them; then issuer and audience."""
        payload: dict[str, Any] = super().verify_token(token, **kwargs)
        client = settings.OIDC_RP_CLIENT_ID
        audience = payload.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        if str(payload.get("iss", "")).rstrip("/") != settings.OIDC_ISSUER:
            raise SuspiciousOperation(f"the token is of {payload.get('iss')!r}")
        if client not in audiences or payload.get("azp", client) != client:
            raise SuspiciousOperation(f"the token is for {audience!r}")
        if "exp" not in payload or not payload.get("sub"):
            raise SuspiciousOperation("the token has no end or names nobody")
        return payload

    def get_or_create_user(
        self, access_token: str, id_token: str, payload: dict[str, Any]
    ) -> User | None:
        """By issuer and ``sub``, which never change; name and groups are those of today."""
        claims = payload
        if self.OIDC_OP_USER_ENDPOINT:
            told = self.get_userinfo(access_token, id_token, payload)
            if told.get("sub") != payload["sub"]:
                raise SuspiciousOperation("the provider tells of someone else")
            # What is signed counts more.
            claims = {**told, **payload}
        return _stored(claims)

    def get_user(self, user_id: Any) -> User | None:
        """Of a session; None for an account that was ended."""
        return User.objects.filter(pk=user_id, is_active=True).first()


def _stored(claims: Mapping[str, Any]) -> User:
    name = claims.get(settings.OIDC_NAME_CLAIM)
    if not isinstance(name, str) or not 1 <= len(name) <= NAME_MAX - len(OIDC_PREFIX):
        raise SuspiciousOperation(f"{settings.OIDC_NAME_CLAIM}: {name!r} is no name")
    groups = claims.get(settings.OIDC_GROUPS_CLAIM, [])
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        raise SuspiciousOperation(f"{settings.OIDC_GROUPS_CLAIM}: allowed: a list of text")
    subject = f"{settings.OIDC_ISSUER} {claims['sub']}"
    values = {"username": f"{OIDC_PREFIX}{name}", "groups": sorted(set(groups))[:GROUPS_MAX]}
    new = {**values, "source": Source.OIDC, "password": "!"}
    try:
        with transaction.atomic():
            user, _ = User.objects.update_or_create(
                subject=subject, defaults=values, create_defaults=new
            )
    except IntegrityError as error:
        raise SuspiciousOperation(f"{name!r} is the name of another account") from error
    return user


class Begin(OIDCAuthenticationRequestView):  # type: ignore[misc]  # untyped
    """Sends the browser to the provider."""

    get_settings = staticmethod(setting)

    def __init__(self, **kwargs: Any) -> None:
        # Without the library's own, which asks the provider before there is someone to answer.
        View.__init__(self, **kwargs)

    def get(self, request: HttpRequest) -> HttpResponse:
        """To the provider; 503 where it does not answer."""
        try:
            self.OIDC_OP_AUTH_ENDPOINT = provider()["authorization_endpoint"]
        except IdentityUnavailable as error:
            logger.warning("a sign-in by OIDC cannot begin: %s", error)
            text = "the account provider does not answer now"
            return plain_refusal(HTTPStatus.SERVICE_UNAVAILABLE, text)
        self.OIDC_RP_CLIENT_ID = settings.OIDC_RP_CLIENT_ID
        response: HttpResponse = super().get(request)
        return response


class Callback(OIDCAuthenticationCallbackView):  # type: ignore[misc]  # untyped
    """Takes the browser back from the provider."""

    get_settings = staticmethod(setting)

    def get(self, request: HttpRequest) -> HttpResponse:
        """A session, or the sign-in page; what did not begin in this session is refused."""
        if request.GET.get("state", "") not in request.session.get(STATES, {}):
            return self.login_failure()
        response: HttpResponse = super().get(request)
        return response

    def login_success(self) -> HttpResponse:
        """Begin the session and go where the person wanted to."""
        begin_user_session(self.request, self.user)
        return HttpResponseRedirect(self.success_url)

    def login_failure(self) -> HttpResponse:
        """The sign-in page with a word about it; the log has the reason."""
        refuse_sign_in(self.request, "oidc", "")
        return HttpResponseRedirect(f"{reverse('access:login')}?failed=oidc")
