"""Lines of every role: for people, or one JSON object each, with what the work under way is about.

The keys are the same in all roles: ``time`` in UTC, ``level``, ``role``, ``logger``, ``thread``,
``message``, what was given as ``extra``, and the fields of :func:`about`. ``pod_uid`` is one Pod's
in every role, from the decision about it to the end of its instances; ``request_id`` is one call's.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

FORMATS: Final = ("text", "json")
_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    *("message", "asctime", "taskName", "request", "status_code", "server_time", "color_message"),
}
"""Of a record itself; Django adds a whole request, which may hold secrets, uvicorn colours."""
_ABOUT: Final[ContextVar[Mapping[str, str]]] = ContextVar("about", default=MappingProxyType({}))


@contextmanager
def about(**fields: str) -> Iterator[None]:
    """Lines that this thread or task logs meanwhile carry the fields, beside those around it."""
    token = _ABOUT.set({**_ABOUT.get(), **fields})
    try:
        yield
    finally:
        _ABOUT.reset(token)


def current(field: str) -> str:
    """What the work under way is about; empty for nothing."""
    return _ABOUT.get().get(field, "")


def new_request_id() -> str:
    """An id for a call that brought none."""
    return uuid.uuid4().hex


def fields_of(record: logging.LogRecord) -> dict[str, str]:
    """The fields around it, and those of its own, which count more."""
    own = {key: str(value) for key, value in vars(record).items() if key not in _OWN}
    return {**_ABOUT.get(), **own}


class TextFormatter(logging.Formatter):
    """A line for people; the fields stand behind the message."""

    def format(self, record: logging.LogRecord) -> str:
        """The message, its fields, and the traceback if there is one."""
        record.message = record.getMessage()
        record.asctime = self.formatTime(record, self.datefmt)
        fields = "".join(f" {key}={value}" for key, value in self.fields(record).items())
        line = self.formatMessage(record) + fields
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line

    def fields(self, record: logging.LogRecord) -> dict[str, str]:
        """What stands behind the message."""
        return fields_of(record)


class JsonFormatter(logging.Formatter):
    """One JSON object in one line for each record, tracebacks included.

    ``always`` are fields of every line.
    """

    def __init__(self, role: str, **always: str) -> None:
        super().__init__()
        self._always = {"role": role, **always}

    def format(self, record: logging.LogRecord) -> str:
        """Fields never take the place of what every line has."""
        entry = self.fields(record) | {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            **self._always,
            "logger": record.name,
            "thread": record.threadName or "",
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)

    def fields(self, record: logging.LogRecord) -> dict[str, str]:
        """What stands beside what every line has."""
        return fields_of(record)
