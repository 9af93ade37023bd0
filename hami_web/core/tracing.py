"""Spans: what took how long, in the words of OpenTelemetry. Off unless :func:`trace_to` was called.

A span that is about a Pod belongs to the trace whose id is the Pod's UID, in every role: decision,
Binding, Allocate and reclaim are one trace, though no call between them can carry an id of ours.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import secrets
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from hami_web.core.log_lines import current

ENDPOINT: Final = "http://HOST:PORT, https://HOST:PORT; empty: no spans"
"""What is allowed as the address of a collector."""
_TRACEPARENT: Final = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}")


@dataclass(slots=True)
class Span:
    """One piece of work. Ids are hexadecimal, times Unix time in nanoseconds.

    ``error`` is what it failed with, empty where it did not.
    """

    name: str
    trace_id: str
    parent_id: str
    began_ns: int
    attributes: dict[str, str]
    span_id: str = field(default_factory=lambda: secrets.token_hex(8))
    ended_ns: int = 0
    error: str = ""


_CURRENT: Final[ContextVar[Span | None]] = ContextVar("span", default=None)
_OFF: Final[AbstractContextManager[None]] = nullcontext()
_sink: list[Callable[[Span], None]] = []
"""Whom ended spans are given to, at most one."""


def trace_to(sink: Callable[[Span], None] | None) -> None:
    """Give ended spans to ``sink``, which must not wait; None turns spans off."""
    _sink[:] = [] if sink is None else [sink]


def is_endpoint(text: str) -> bool:
    """Whether spans can be sent there."""
    parts = urlsplit(text)
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def export_to(endpoint: str, role: str, **resource: str) -> None:
    """Send this process's spans to a collector, as ``hami-ROLE``; with an empty text to nobody.

    What sends them is loaded only then.
    """
    if endpoint:
        otlp = importlib.import_module("hami_web.core.otlp")
        trace_to(otlp.Exporter(endpoint, {"service.name": f"hami-{role}", **resource}).add)


def annotate(**attributes: str) -> None:
    """Say more about the span under way, if there is one."""
    now = _CURRENT.get()
    if now is not None:
        now.attributes.update(attributes)


def span(
    name: str, *, traceparent: str = "", **attributes: str
) -> AbstractContextManager[Span | None]:
    """Time the block, also when it fails; nothing happens while spans are off.

    Within another span it is a part of that one. Else it belongs to the Pod that lines logged now
    are about, to the caller's ``traceparent`` (W3C Trace Context), or to a trace of its own.
    """
    return _timed(name, traceparent, attributes) if _sink else _OFF


@contextmanager
def _timed(name: str, traceparent: str, attributes: dict[str, str]) -> Iterator[Span]:
    trace_id, parent_id = _place(traceparent)
    about = {f"hami.{key}": value for key in ("pod", "request_id") if (value := current(key))}
    made = Span(name, trace_id, parent_id, time.time_ns(), {**about, **attributes})
    began, token = time.monotonic_ns(), _CURRENT.set(made)
    try:
        yield made
    except Exception as error:
        made.error = str(error) or type(error).__name__
        raise
    finally:
        _CURRENT.reset(token)
        made.ended_ns = made.began_ns + time.monotonic_ns() - began
        for sink in _sink:
            sink(made)


def _place(traceparent: str) -> tuple[str, str]:
    """Trace and parent of a span that begins now."""
    outer, pod_uid = _CURRENT.get(), current("pod_uid")
    if outer is not None:
        return outer.trace_id, outer.span_id
    if pod_uid:
        return trace_of_pod(pod_uid), ""
    found = _TRACEPARENT.fullmatch(traceparent)
    return (found[1], found[2]) if found else (secrets.token_hex(16), "")


def trace_of_pod(uid: str) -> str:
    """The id of the trace about a Pod: its UID without hyphens, or a hash of what is no UUID."""
    try:
        return uuid.UUID(uid).hex
    except ValueError:
        return hashlib.sha256(uid.encode()).hexdigest()[:32]
