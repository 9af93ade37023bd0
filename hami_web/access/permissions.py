"""For DRF: who asks, whether they may, and how often."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import APIException, AuthenticationFailed, Throttled
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from hami_web.access.caller import Caller
from hami_web.access.declared import declaration_of
from hami_web.access.errors import IdentityUnavailable, InvalidCredentials, TooManyFailures
from hami_web.access.identity import caller_of, is_ambient
from hami_web.access.network import client_address
from hami_web.access.pacing import TokenBuckets

if TYPE_CHECKING:
    # rest_framework.views imports this module, by the settings.
    from rest_framework.views import APIView


class Unidentified(APIException):
    """Whoever could tell who asks does not answer."""

    status_code = 503
    default_detail = "who asks cannot be found out now"
    code = "identity.unavailable"


class CallerAuthentication(BaseAuthentication):
    """The caller of the request, whichever way they are known; ``request.user`` is it."""

    def authenticate(self, request: Request) -> tuple[Caller, None] | None:
        """None for nobody, so that the answer is 401."""
        plain = plain_request(request)
        try:
            caller = caller_of(plain)
        except InvalidCredentials as error:
            raise AuthenticationFailed(str(error)) from error
        except TooManyFailures as error:
            raise Throttled(wait=error.retry_after_s) from error
        except IdentityUnavailable as error:
            if isinstance(error.__cause__, DatabaseError):
                raise error.__cause__ from error
            raise Unidentified(str(error)) from error
        if caller is None or caller.is_anonymous:
            return None
        if is_ambient(plain):
            SessionAuthentication().enforce_csrf(request)
        return (caller, None)

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002
        """What a 401 asks for."""
        return 'Bearer realm="hami-web"'


class MayDo(BasePermission):
    """Allows what the view declares (``verb``, or ``verbs`` by method); nothing declared, nothing
    allowed."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Whether the caller's role allows the verb."""
        declared = declaration_of(view, str(request.method))
        if declared is None:
            return False
        if declared.verb is None:
            return True
        caller = caller_of(plain_request(request))
        return caller is not None and caller.may(declared.verb)


class CallerThrottle(BaseThrottle):
    """``HAMI_API_CALLS_PER_MINUTE`` for each caller; nobody is counted by address."""

    _buckets: TokenBuckets | None = None
    _rate: float = 0.0

    def __init__(self) -> None:
        self._wait_s = 0.0

    def allow_request(self, request: Request, view: APIView) -> bool:  # noqa: ARG002
        """Count the call."""
        caller = caller_of(plain_request(request))
        named = caller is not None and not caller.is_anonymous
        key = caller.key if caller and named else client_address(plain_request(request))
        self._wait_s = self._shared().take(key)
        return not self._wait_s

    def wait(self) -> float:
        """Seconds until the next call."""
        return self._wait_s

    @classmethod
    def _shared(cls) -> TokenBuckets:
        rate = settings.API_CALLS_PER_MINUTE
        if cls._buckets is None or cls._rate != rate:
            cls._buckets, cls._rate = TokenBuckets(rate), rate
        return cls._buckets


def plain_request(request: Request) -> HttpRequest:
    """Django's request below DRF's."""
    return request._request  # noqa: SLF001  # DRF's documented attribute
