"""Every request gets an id, its true scheme, and a guard before its view."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from hami_web.access.declared import FRAGMENT, Declaration, declaration_of
from hami_web.access.errors import AccessError, IdentityUnavailable, TooManyFailures
from hami_web.access.identity import caller_of, visibility_of
from hami_web.access.network import from_trusted_proxy
from hami_web.access.refusals import denied_page, plain_refusal, unseen_page
from hami_web.core.tracing import span
from hami_web.logs import REQUEST_ID, answering

logger = logging.getLogger(__name__)

GetResponse = Callable[[HttpRequest], HttpResponseBase]
_ID: Final = re.compile(r"[A-Za-z0-9._-]{8,64}")
PERMISSIONS_POLICY: Final = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"


class RequestIdentity:
    """Middleware: an id for log and audit, and the scheme that an allowed proxy tells."""

    def __init__(self, get_response: GetResponse) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        trusted = from_trusted_proxy(request)
        given = request.headers.get("X-Request-Id", "") if trusted else ""
        request.META[REQUEST_ID] = given if _ID.fullmatch(given) else uuid.uuid4().hex
        if trusted:
            # A key that no header can have: only we can set it.
            request.META[settings.SECURE_PROXY_SSL_HEADER[0]] = request.headers.get(
                "X-Forwarded-Proto", ""
            )
        parent = request.headers.get("Traceparent", "") if trusted else ""
        with (
            answering(request.META[REQUEST_ID]),
            span(f"{request.method} web", traceparent=parent, **{"url.path": request.path}),
        ):
            response = self._get_response(request)
        response.headers["X-Request-Id"] = str(request.META[REQUEST_ID])
        response.headers.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        return response


class Guard:
    """Middleware: no view runs that has not declared what it needs, or whose needs are not met.

    An address that names a namespace is refused to those who do not see it, whatever is there.
    DRF's views are left to DRF, whose answers are problems and no pages.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self._get_response(request)

    def process_view(
        self, request: HttpRequest, view: Any, _args: object, kwargs: Mapping[str, Any]
    ) -> HttpResponseBase | None:
        """None lets the view run."""
        declared = declaration_of(view, str(request.method))
        if declared is None:
            logger.error("%s declares no access and is refused", request.path)
            return plain_refusal(HTTPStatus.FORBIDDEN, "this address declares no access")
        if declared.verb is None or hasattr(view, "cls"):
            return None
        refusal = _refusal(request, declared)
        if refusal is None and not visibility_of(request).sees(kwargs.get("namespace", "")):
            return unseen_page(request)
        return refusal


def _refusal(request: HttpRequest, declared: Declaration) -> HttpResponseBase | None:
    try:
        caller = caller_of(request)
    except TooManyFailures as error:
        response = plain_refusal(HTTPStatus.TOO_MANY_REQUESTS, str(error))
        response["Retry-After"] = str(max(1, round(error.retry_after_s)))
        return response
    except IdentityUnavailable as error:
        return plain_refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
    except AccessError as error:
        return plain_refusal(HTTPStatus.UNAUTHORIZED, str(error))
    if caller is not None and declared.verb is not None and caller.may(declared.verb):
        return None
    if declared.fragment or FRAGMENT in request.headers:
        status = HTTPStatus.UNAUTHORIZED if caller is None else HTTPStatus.FORBIDDEN
        return plain_refusal(status, "sign in" if caller is None else "not allowed")
    if caller is None or caller.is_anonymous:
        return redirect(f"{reverse('access:login')}?{urlencode({'next': request.get_full_path()})}")
    return denied_page(request, caller)
