"""Pages that list the newest rows of a table."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any, Final

from django.db import DatabaseError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from hami_web.dashboard.pages import respond
from hami_web.dashboard.seen import seen_map

logger = logging.getLogger(__name__)

SHOWN_MAX: Final = 200


def newest(rows: QuerySet[Any]) -> list[Any] | None:
    """The newest rows and one more, one query; None where they cannot be read."""
    try:
        return list(rows[: SHOWN_MAX + 1])
    except DatabaseError as error:
        logger.warning("%s cannot be read: %s", rows.model.__name__, error)
        return None


def list_page(
    request: HttpRequest, template: str, context: dict[str, Any], *, readable: bool
) -> HttpResponse:
    """The page, 503 where its rows cannot be read."""
    status = HTTPStatus.OK if readable else HTTPStatus.SERVICE_UNAVAILABLE
    context["readable"] = readable
    return respond(request, template, context, current=seen_map(request), status=status)
