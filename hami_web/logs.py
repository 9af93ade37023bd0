"""How lines are logged: for people, or as one JSON object each; standard library only.

The keys are those of the node agent's lines (``time`` in UTC, ``level``, ``logger``, ``message``,
what was given as ``extra``), with ``role`` and, while a request is answered, ``request_id``.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final

FORMATS: Final = ("text", "json")
ROLES: Final = ("extender", "web", "worker", "beat")
_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    *("message", "asctime", "taskName", "request", "status_code", "server_time", "color_message"),
}
"""Of a record itself; Django adds a whole request, which may hold secrets, uvicorn colours."""
REQUEST_ID: Final = "hami.request-id"
"""Key of a request's ``META``, which no header can have."""
_REQUEST_ID: Final[ContextVar[str]] = ContextVar("request_id", default="")


def role_of(arguments: Sequence[str]) -> str:
    """The role that a command line starts, or ``command`` for one that ends by itself."""
    return next((word for word in arguments[1:] if word in ROLES), "command")


@contextmanager
def answering(request_id: str) -> Iterator[None]:
    """Lines that are logged meanwhile carry the id."""
    before = _REQUEST_ID.get()
    _REQUEST_ID.set(request_id)
    try:
        yield
    finally:
        _REQUEST_ID.set(before)


def _fields(record: logging.LogRecord) -> dict[str, str]:
    found = {key: str(value) for key, value in vars(record).items() if key not in _OWN}
    # Django tells of a refusal when the answer has left our middleware; the request knows its id.
    request = getattr(record, "request", None)
    request_id = _REQUEST_ID.get() or str(getattr(request, "META", {}).get(REQUEST_ID, ""))
    return found | ({"request_id": request_id} if request_id else {})


class TextFormatter(logging.Formatter):
    """A line for people; the fields stand behind the message."""

    def format(self, record: logging.LogRecord) -> str:
        """The message, its fields, and the traceback if there is one."""
        record.message = record.getMessage()
        record.asctime = self.formatTime(record, self.datefmt)
        fields = "".join(f" {key}={value}" for key, value in _fields(record).items())
        line = self.formatMessage(record) + fields
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object in one line for each record, tracebacks included."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role

    def format(self, record: logging.LogRecord) -> str:
        """Fields never take the place of what every line has."""
        entry = _fields(record) | {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "role": self._role,
            "logger": record.name,
            "thread": record.threadName or "",
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)
