"""An API server that serves one list of nodes and one of Pods at once, and silent watches.

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
    """GET only."""

    protocol_version = "HTTP/1.1"
    bodies: ClassVar[dict[str, bytes]] = {}
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
        body = self.bodies.get(url.path, EMPTY)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Nothing to tell."""


def listed(path: Path) -> bytes:
    """The pages of a file as one list."""
    pages = [line.strip()[1:-1] for line in path.read_bytes().splitlines()]
    return b'{"metadata":{"resourceVersion":"1"},"items":[' + b",".join(pages) + b"]}"


def main() -> None:
    folder = Path(sys.argv[1])
    Handler.bodies = {
        "/api/v1/nodes": listed(folder / "nodes.jsonl"),
        "/api/v1/pods": listed(folder / "pods.jsonl"),
    }
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
