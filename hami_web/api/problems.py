"""Errors as ``application/problem+json`` (RFC 9457), each with a stable code."""

from __future__ import annotations

import logging
import math
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.http import Http404
from rest_framework import status
from rest_framework.exceptions import APIException, NotFound
from rest_framework.exceptions import PermissionDenied as NotPermitted
from rest_framework.response import Response

logger = logging.getLogger(__name__)

CODES = {
    401: "request.unauthenticated",
    403: "request.forbidden",
    404: "request.not_found",
    405: "request.method_not_allowed",
    406: "request.format_unavailable",
    429: "request.throttled",
    503: "mirror.unavailable",
}
CONTENT_TYPE = "application/problem+json"


class InvalidParameter(APIException):
    """A parameter of the query makes no sense: 400 with field, value and what is allowed."""

    status_code = status.HTTP_400_BAD_REQUEST

    def __init__(self, field: str, value: str, allowed: str) -> None:
        self.problem = {"field": field, "value": value[:200], "allowed": allowed}
        super().__init__(f"{field}: {value[:200]!r} is not allowed; allowed: {allowed}")


class MirrorUnavailable(APIException):
    """The database does not answer, or was never migrated."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_detail = "the mirror's database cannot be read now"


class NotVisible(APIException):
    """A namespace in the address that the caller may not see, whether it exists or not."""

    status_code = status.HTTP_403_FORBIDDEN
    default_detail = "what lies in this namespace is unavailable to you"
    code = "namespace.unavailable"


def problem_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler; None for what is no answer to the caller but a fault of ours."""
    if isinstance(error, Http404):
        error = NotFound(str(error) or None)
    if isinstance(error, PermissionDenied):
        error = NotPermitted()
    if isinstance(error, DatabaseError):
        logger.error("the mirror cannot be read: %s", error)
        error = MirrorUnavailable()
    if not isinstance(error, APIException):
        return None
    body: dict[str, object] = {
        "type": "about:blank",
        "title": error.default_detail,
        "status": error.status_code,
        "code": getattr(error, "code", CODES.get(error.status_code, "request.invalid")),
        "detail": str(error.detail),
    }
    if isinstance(error, InvalidParameter):
        body |= {"title": "Invalid parameter", "code": "request.parameter.invalid"}
        body["errors"] = [error.problem]
    response = Response(body, status=error.status_code, content_type=CONTENT_TYPE)
    header = getattr(error, "auth_header", None)
    if header:
        response["WWW-Authenticate"] = header
    wait_s = getattr(error, "wait", None)
    if wait_s is not None:
        response["Retry-After"] = str(max(1, math.ceil(wait_s)))
    request = context["request"]
    # Whatever format was asked for, a problem is told as JSON.
    request.accepted_renderer = _json_renderer(context["view"])
    request.accepted_media_type = CONTENT_TYPE
    return response


def _json_renderer(view: Any) -> Any:
    return view.get_renderers()[0]
