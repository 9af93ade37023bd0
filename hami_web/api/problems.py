"""Errors as ``application/problem+json`` (RFC 9457), each with a stable code."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import DatabaseError
from django.http import Http404
from rest_framework.exceptions import APIException, NotFound
from rest_framework.exceptions import PermissionDenied as NotPermitted
from rest_framework.response import Response

from hami_web.api.codes import (
    BODY,
    BY_CODE,
    BY_STATUS,
    CLUSTER_REFUSED,
    CLUSTER_UNAVAILABLE,
    MIRROR_UNAVAILABLE,
    NAMESPACE_UNAVAILABLE,
    OUTCOME_UNCLEAR,
    PARAMETER,
    TOO_LARGE,
    UNREADABLE,
    Kind,
)
from hami_web.cluster.errors import (
    ClusterError,
    InvalidConfiguration,
    TooManyRequests,
    Unreachable,
)
from hami_web.logs import REQUEST_ID

logger = logging.getLogger(__name__)

CONTENT_TYPE: Final = "application/problem+json"
SHOWN_MAX: Final = 200
"""Characters of a foreign value that are repeated."""


class Problem(APIException):
    """Any problem of the table; ``more`` are further members of the answer."""

    def __init__(self, kind: Kind, detail: str, **more: object) -> None:
        self.kind = kind
        self.status_code = kind.status
        self.more = more
        super().__init__(detail)


class InvalidParameter(Problem):
    """A parameter of the query makes no sense: 400 with field, value and what is allowed."""

    def __init__(self, field: str, value: str, allowed: str) -> None:
        entry = error_of(field, value, allowed)
        super().__init__(PARAMETER, _sentence(entry), errors=[entry])


class InvalidBody(Problem):
    """Fields of the body make no sense: 400 with each field, its value and what is allowed."""

    def __init__(self, errors: Sequence[Mapping[str, str]]) -> None:
        super().__init__(BODY, "; ".join(map(_sentence, errors)), errors=list(errors))


class NotVisible(Problem):
    """A namespace in the address that the caller may not see, whether it exists or not."""

    def __init__(self) -> None:
        super().__init__(NAMESPACE_UNAVAILABLE, "what lies in this namespace is unavailable to you")


def error_of(field: str, value: object, allowed: str) -> dict[str, str]:
    """One entry of ``errors``."""
    text = value if isinstance(value, str) else repr(value)
    # A body may hold half of a surrogate pair, which no answer can.
    shown = text[:SHOWN_MAX].encode("utf-8", "replace").decode()
    return {"field": field, "value": shown, "allowed": allowed}


def problem_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler; None for what is no answer to the caller but a fault of ours."""
    if isinstance(error, Http404):
        error = NotFound(str(error) or None)
    if isinstance(error, PermissionDenied):
        error = NotPermitted()
    if isinstance(error, DatabaseError):
        logger.error("the mirror cannot be read: %s", error)
        error = Problem(MIRROR_UNAVAILABLE, "the mirror's database cannot be read now")
    if isinstance(error, ClusterError):
        logger.warning("the API server: %s", error)
        error = of_cluster(error)
    if isinstance(error, RequestDataTooBig):
        error = Problem(TOO_LARGE, "the body has more bytes than are read")
    if not isinstance(error, APIException):
        return None
    request = context["request"]
    body = {**_body(error), "request_id": request.META.get(REQUEST_ID, "")}
    response = Response(
        body, status=error.status_code, content_type=CONTENT_TYPE, headers=_headers(error)
    )
    # Whatever format was asked for, a problem is told as JSON.
    request.accepted_renderer = context["view"].get_renderers()[0]
    request.accepted_media_type = CONTENT_TYPE
    return response


def of_cluster(error: ClusterError) -> Problem:
    """A failure of the API server; ``cluster_code`` is the code of the failure itself."""
    if error.outcome_unclear:
        kind = OUTCOME_UNCLEAR
    elif isinstance(error, Unreachable | TooManyRequests | InvalidConfiguration):
        kind = CLUSTER_UNAVAILABLE
    else:
        kind = CLUSTER_REFUSED
    return Problem(kind, str(error), cluster_code=error.code)


def _body(error: APIException) -> dict[str, object]:
    kind = kind_of(error)
    more = error.more if isinstance(error, Problem) else {}
    return {
        "type": kind.type,
        "title": str(kind.title),
        "status": error.status_code,
        "code": kind.code,
        "detail": str(error.detail),
        **more,
    }


def kind_of(error: APIException) -> Kind:
    """The entry of the table: the error's own, that of its code, or the one of its status."""
    if isinstance(error, Problem):
        return error.kind
    code = getattr(error, "code", None)
    if code in BY_CODE:
        return BY_CODE[code]
    return BY_STATUS.get(error.status_code, UNREADABLE)


def _headers(error: APIException) -> dict[str, str]:
    headers: dict[str, str] = {}
    authenticate = getattr(error, "auth_header", None)
    if authenticate:
        headers["WWW-Authenticate"] = authenticate
    wait_s = getattr(error, "wait", None)
    if wait_s is not None:
        headers["Retry-After"] = str(max(1, math.ceil(wait_s)))
    return headers


def _sentence(entry: Mapping[str, str]) -> str:
    return f"{entry['field']}: {entry['value']!r} is not allowed; allowed: {entry['allowed']}"
