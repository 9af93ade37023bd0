"""``/metrics`` on a port of its own, and ``/readyz`` for a role without a main address."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from hami_web.core.faults import Fault
from hami_web.environment import Refused
from hami_web.metrics.exposition import CONTENT_TYPE

logger = logging.getLogger(__name__)

ALLOWED = "host:port, port 0…65535"


class MetricsServer:
    """Serves what ``text`` returns, from ``start`` to ``close``."""

    def __init__(
        self, listen: str, text: Callable[[], bytes], problem: Callable[[], str] | None = None
    ) -> None:
        """``listen`` is ``host:port``; ValueError for anything else, OSError if it is taken.

        ``problem`` says why the role is not ready, or an empty text; without it nobody may ask.
        """
        host, _, port = listen.rpartition(":")
        if not host or not port.isdigit() or int(port) > 65535:
            raise ValueError(f"{listen!r} is not allowed; allowed: {ALLOWED}")
        self._server = _Server((host.strip("[]"), int(port)), _Handler)
        self._server.text = text
        self._server.problem = problem
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="metrics", daemon=True
        )

    @property
    def port(self) -> int:
        """Where it listens; chosen by the system if it was to be 0."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def start_server(
    listen: str, text: Callable[[], bytes], problem: Callable[[], str] | None = None
) -> MetricsServer | None:
    """A running server if an address is configured; Refused if it is unusable."""
    if not listen:
        return None
    try:
        server = MetricsServer(listen, text, problem)
    except (ValueError, OSError) as error:
        raise Refused(Fault.ADDRESS, f"HAMI_METRICS_LISTEN: {listen}: {error}") from error
    server.start()
    return server


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    text: Callable[[], bytes]
    problem: Callable[[], str] | None


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 5

    def do_GET(self) -> None:
        """The text, how the role is, or 404."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._measure()
        elif self.server.problem is not None and path in ("/healthz", "/readyz"):
            problem = self.server.problem() if path == "/readyz" else ""
            status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
            self._answer(status, f"{problem or 'ok'}\n".encode(), "text/plain; charset=utf-8")
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _measure(self) -> None:
        try:
            body = self.server.text()
        except Exception:
            logger.exception("the metrics of this process")
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR)
            return
        self._answer(HTTPStatus.OK, body, CONTENT_TYPE)

    def _answer(self, status: HTTPStatus, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Scrapes are not logged."""
