"""An API server that serves the pages of nodes and Pods at once, and silent watches.

``python -m tests.benchmarks.filter.lists FOLDER`` prints its port and serves until killed.
"""

from __future__ import annotations

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

EMPTY = b'{"kind":"List","metadata":{"resourceVersion":"1"},"items":[]}'


class Handler(BaseHTTPRequestHandler):
    """Lists and watches; everything written is accepted and forgotten."""

    protocol_version = "HTTP/1.1"
    pages: ClassVar[dict[str, list[bytes]]] = {}
    forever: ClassVar[threading.Event] = threading.Event()

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if parse_qs(url.query).get("watch", ["0"])[0] in ("1", "true"):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.flush()
            self.forever.wait()
            return
        pages = self.pages.get(url.path, [EMPTY])
        self._answer(200, pages[int(parse_qs(url.query).get("continue", ["0"])[0])])

    def do_POST(self) -> None:
        """Events, which nobody reads here."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(201, b"{}")

    do_PATCH = do_POST  # noqa: N815 the name is http.server's

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Nothing to tell."""


def listed(path: Path) -> list[bytes]:
    """The pages of a file, each with the token of the next."""
    lines = [line.strip() for line in path.read_bytes().splitlines()]
    return [
        b'{"metadata":{"resourceVersion":"1","continue":"%s"},"items":%s}'
        % (str(number).encode() if number < len(lines) else b"", line)
        for number, line in enumerate(lines, 1)
    ]


def main() -> None:
    folder = Path(sys.argv[1])
    Handler.pages = {
        "/api/v1/nodes": listed(folder / "nodes.jsonl"),
        "/api/v1/pods": listed(folder / "pods.jsonl"),
    }
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
