"""Sends spans to a collector: OTLP over HTTP in its JSON encoding, with the standard library alone.

Work never waits for it: spans queue up to a bound and are lost beyond, or when nobody takes them.
"""

from __future__ import annotations

import atexit
import http.client
import json
import logging
import os
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.error import URLError
from urllib.request import Request, urlopen

from hami_web.core.tracing import Span

logger = logging.getLogger(__name__)

QUEUE_MOST: Final = 2048
BATCH_MOST: Final = 512
EVERY_S: Final = 1.0
TIMEOUT_S: Final = 5.0
_FAILED: Final = 2
"""OTLP's status of a span that ended with an error."""


class Exporter:
    """A bounded queue and a thread, begun with the first span of each process; safe for forks."""

    def __init__(self, endpoint: str, resource: Mapping[str, str]) -> None:
        self.lost = 0
        """Spans that were not taken."""
        self._url = f"{endpoint.rstrip('/')}/v1/traces"
        self._resource = dict(resource)
        self._process = 0
        self._start = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._spans: deque[Span] = deque()
        self._wake = threading.Event()
        self._sending = threading.Lock()
        self._failing = False

    def add(self, span: Span) -> None:
        """Take an ended span; never waits for the collector."""
        if self._process != os.getpid():
            self._follow()
        if len(self._spans) >= QUEUE_MOST:
            self.lost += 1
            return
        self._spans.append(span)
        if len(self._spans) >= BATCH_MOST:
            self._wake.set()

    def flush(self) -> None:
        """Send what is queued now; waits for the collector for each batch."""
        with self._sending:
            while self._spans and self._send(self._batch()):
                pass

    def _follow(self) -> None:
        """Begin the thread of this process, which may be a fork of one that had its own."""
        with self._start:
            if self._process == os.getpid():
                return
            self._begin()
            threading.Thread(target=self._run, name="spans", daemon=True).start()
            atexit.register(self.flush)
            self._process = os.getpid()

    def _run(self) -> None:
        while True:
            self._wake.wait(EVERY_S)
            self._wake.clear()
            self.flush()

    def _batch(self) -> list[Span]:
        return [self._spans.popleft() for _ in range(min(len(self._spans), BATCH_MOST))]

    def _send(self, spans: list[Span]) -> bool:
        body = json.dumps(encode(spans, self._resource)).encode()
        headers = {"Content-Type": "application/json"}
        request = Request(self._url, body, headers)  # noqa: S310, the setting allows HTTP alone
        try:
            with urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
                answer.read()
        except (URLError, OSError, http.client.HTTPException) as error:
            self.lost += len(spans)
            if not self._failing:
                logger.warning("spans are lost, %s does not take them: %s", self._url, error)
            self._failing = True
            return False
        if self._failing:
            logger.info("spans are taken again; %d were lost", self.lost)
        self._failing = False
        return True


def encode(spans: Iterable[Span], resource: Mapping[str, str]) -> dict[str, Any]:
    """An ``ExportTraceServiceRequest`` in OTLP's JSON encoding."""
    found = [_span(span) for span in spans]
    scope = {"scope": {"name": "hami_web"}, "spans": found}
    return {"resourceSpans": [{"resource": _attributes(resource), "scopeSpans": [scope]}]}


def _span(span: Span) -> dict[str, Any]:
    document = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_id,
        "name": span.name,
        "kind": 1,
        "startTimeUnixNano": str(span.began_ns),
        "endTimeUnixNano": str(span.ended_ns),
        **_attributes(span.attributes),
    }
    return document | ({"status": {"code": _FAILED, "message": span.error}} if span.error else {})


def _attributes(values: Mapping[str, str]) -> dict[str, Any]:
    found = [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]
    return {"attributes": found}
