"""The agent's small HTTP server: /healthz, /readyz and /metrics, on loopback unless told else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from node_agent.metrics import AgentMetrics

_TEXT: Final = "text/plain; charset=utf-8"
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"


class HealthServer:
    """Serves until closed. ``problem`` returns why the agent is not ready, or an empty text."""

    def __init__(
        self, address: str, port: int, metrics: AgentMetrics, problem: Callable[[], str]
    ) -> None:
        self._server = _Server((address, port), _Handler)
        self._server.metrics = metrics
        self._server.problem = problem
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="health"
        )

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop serving and wait for the thread."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    metrics: AgentMetrics
    problem: Callable[[], str]


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 5

    def do_GET(self) -> None:
        """Answer one of the three paths."""
        if self.path == "/metrics":
            self._answer(HTTPStatus.OK, self.server.metrics.text(), _METRICS)
        elif self.path == "/healthz":
            self._answer(HTTPStatus.OK, b"ok\n", _TEXT)
        elif self.path == "/readyz":
            problem = self.server.problem()
            status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
            self._answer(status, f"{problem or 'ok'}\n".encode(), _TEXT)
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"not found\n", _TEXT)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged; probes come every few seconds."""

    def _answer(self, status: HTTPStatus, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
