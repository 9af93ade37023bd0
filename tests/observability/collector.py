"""A collector of OTLP over HTTP, as small as one can be."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Collector:
    """Spans as they came: each the JSON of the protocol, with ``service`` beside it."""

    def __init__(self) -> None:
        self.url = ""
        self.refuses = False
        self.spans: list[dict[str, Any]] = []

    def take(self, document: dict[str, Any]) -> None:
        for part in document["resourceSpans"]:
            resource = {a["key"]: a["value"]["stringValue"] for a in part["resource"]["attributes"]}
            for scope in part["scopeSpans"]:
                for span in scope["spans"]:
                    self.spans.append(span | {"service": resource["service.name"]})

    def names(self) -> set[str]:
        return {span["name"] for span in self.spans}

    def of(self, trace: str, service: str) -> set[str]:
        return {
            span["name"]
            for span in self.spans
            if (span["traceId"], span["service"]) == (trace, service)
        }


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on loopback."""
    found = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if not found.refuses:
                found.take(json.loads(body))
            self.send_response(503 if found.refuses else 200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        found.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
