"""Who sent a request: a token, a header of a trusted proxy, a session, or nobody."""

from __future__ import annotations

import logging
from typing import Final

from django.conf import settings
from django.contrib.auth import get_user
from django.db import DatabaseError
from django.http import HttpRequest

from hami_web.access.caller import Caller, KubernetesUser, Source
from hami_web.access.errors import (
    AccessError,
    IdentityUnavailable,
    InvalidCredentials,
    TooManyFailures,
)
from hami_web.access.network import client_address, from_trusted_proxy
from hami_web.access.pacing import TokenBuckets
from hami_web.access.people import (
    caller_of_groups,
    caller_of_kubernetes,
    caller_of_user,
    scope_of,
)
from hami_web.access.reviewer import reviewer
from hami_web.access.roles import Role
from hami_web.access.visibility import Visibility

logger = logging.getLogger(__name__)

FAILURES_A_MINUTE: Final = 30
"""Wrong bearer tokens of one address; above that none is looked at."""
KUBERNETES_SESSION: Final = "kubernetes"
"""Where a session keeps the user that the API server named at sign-in; never the token."""
_CALLER: Final = "hami.caller"
_VISIBILITY: Final = "hami.visibility"
_failures = TokenBuckets(FAILURES_A_MINUTE)


def caller_of(request: HttpRequest) -> Caller | None:
    """The caller, found once for each request; None for nobody.

    Raises AccessError: wrong credentials never fall back to what nobody may.
    """
    if _CALLER not in request.META:
        try:
            request.META[_CALLER] = _identify(request)
        except AccessError as error:
            request.META[_CALLER] = error
        except DatabaseError as error:
            unavailable = IdentityUnavailable("the database does not answer now")
            unavailable.__cause__ = error
            request.META[_CALLER] = unavailable
    found = request.META[_CALLER]
    if isinstance(found, AccessError):
        raise found
    return found if isinstance(found, Caller) else None


def visibility_of(request: HttpRequest) -> Visibility:
    """What the caller may see; nothing where there is none."""
    if _VISIBILITY not in request.META:
        caller = caller_of(request) or Caller("", Source.ANONYMOUS, None)
        request.META[_VISIBILITY] = Visibility(caller)
    found = request.META[_VISIBILITY]
    assert isinstance(found, Visibility)  # noqa: S101  # set above
    return found


def is_ambient(request: HttpRequest) -> bool:
    """Whether browsers send this identity by themselves, so that writes need a CSRF token."""
    return not request.headers.get("Authorization")


def _identify(request: HttpRequest) -> Caller | None:
    return (
        _from_authorization(request)
        or _from_proxy(request)
        or _from_session(request)
        or _anonymous()
    )


def _from_authorization(request: HttpRequest) -> Caller | None:
    header = request.headers.get("Authorization", "")
    if not header:
        return None
    address = client_address(request)
    wait_s = _failures.wait(address)
    if wait_s:
        raise TooManyFailures(wait_s)
    try:
        return _from_bearer(header)
    except InvalidCredentials as error:
        _failures.take(address)
        logger.warning("%s: %s", address, error)
        raise


def _from_bearer(header: str) -> Caller:
    # The extender, which has no models, loads this module when it checks the addresses.
    from hami_web.access.tokens import PREFIX, caller_of_token  # noqa: PLC0415

    scheme, _, given = header.partition(" ")
    token = given.strip()
    if scheme.lower() != "bearer" or not token:
        raise InvalidCredentials("Authorization: allowed: Bearer and a token")
    if token.startswith(PREFIX) or not settings.KUBERNETES_LOGIN:
        return caller_of_token(token)
    user = reviewer().user_of(token)
    if user is None:
        raise InvalidCredentials("the API server does not accept this token")
    return caller_of_kubernetes(user)


def _from_proxy(request: HttpRequest) -> Caller | None:
    if not settings.PROXY_USER_HEADER:
        return None
    name = request.headers.get(settings.PROXY_USER_HEADER, "").strip()
    if not name:
        return None
    if not from_trusted_proxy(request):
        logger.warning(
            "%s sent %s without being an allowed proxy; the header is ignored",
            request.META.get("REMOTE_ADDR"),
            settings.PROXY_USER_HEADER,
        )
        return None
    groups = request.headers.get(settings.PROXY_GROUPS_HEADER, "").split(",")
    held = [group.strip() for group in groups if group.strip()]
    return caller_of_groups(name[:253], held, Source.PROXY)


def _from_session(request: HttpRequest) -> Caller | None:
    if settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return None
    # Not request.user: DRF sets that to None where a view asks for no authentication.
    user = get_user(request)
    if user.is_authenticated:
        return caller_of_user(user)
    kept = request.session.get(KUBERNETES_SESSION)
    if isinstance(kept, dict) and settings.KUBERNETES_LOGIN:
        return caller_of_kubernetes(
            KubernetesUser(str(kept["name"]), tuple(kept["groups"]), str(kept["uid"]))
        )
    return None


def _anonymous() -> Caller | None:
    if settings.ANONYMOUS_ROLE == "none":
        return None
    scope = scope_of(settings.ANONYMOUS_NAMESPACES)
    return Caller("anonymous", Source.ANONYMOUS, Role(settings.ANONYMOUS_ROLE), scope)
