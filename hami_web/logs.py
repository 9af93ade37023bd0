"""How lines of the control plane are logged, with the id of the request that is answered."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Final

from hami_web.core import log_lines

FORMATS: Final = log_lines.FORMATS
ROLES: Final = ("extender", "web", "worker", "beat")
REQUEST_ID: Final = "hami.request-id"
"""Key of a request's ``META``, which no header can have."""


def role_of(arguments: Sequence[str]) -> str:
    """The role that a command line starts, or ``command`` for one that ends by itself."""
    return next((word for word in arguments[1:] if word in ROLES), "command")


def answering(request_id: str) -> AbstractContextManager[None]:
    """Lines that are logged meanwhile carry the id."""
    return log_lines.about(request_id=request_id)


def _fields(record: logging.LogRecord) -> dict[str, str]:
    found = log_lines.fields_of(record)
    # Django tells of a refusal when the answer has left our middleware; the request knows its id.
    request_id = str(getattr(getattr(record, "request", None), "META", {}).get(REQUEST_ID, ""))
    return found if not request_id else {"request_id": request_id} | found


class TextFormatter(log_lines.TextFormatter):
    """A line for people."""

    def fields(self, record: logging.LogRecord) -> dict[str, str]:
        """The request's id too, where only the request knows it."""
        return _fields(record)


class JsonFormatter(log_lines.JsonFormatter):
    """One JSON object in one line."""

    def fields(self, record: logging.LogRecord) -> dict[str, str]:
        """The request's id too, where only the request knows it."""
        return _fields(record)
