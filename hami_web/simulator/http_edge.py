"""HTTP/1.1 around the simulated API: framing, streams, and the faults that tests order."""

from __future__ import annotations

import logging
import select
import socket
import threading
from dataclasses import dataclass, replace
from http.client import responses
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from hami_web.simulator import problems
from hami_web.simulator.api import Answer, Api
from hami_web.simulator.documents import encode
from hami_web.simulator.faults import Fault, Faults, RequestMatch
from hami_web.simulator.problems import ApiProblem
from hami_web.simulator.requests import ApiRequest, parse_request
from hami_web.simulator.resources import discovery, group_list
from hami_web.simulator.watching import WatchStream

logger = logging.getLogger(__name__)

_HEALTH = ("/healthz", "/livez", "/readyz")
_VERSION = {"major": "1", "minor": "34", "gitVersion": "v1.34.0-simulated"}


@dataclass(frozen=True, slots=True)
class Edge:
    """What every connection shares."""

    api: Api
    faults: Faults
    stopping: threading.Event


class HttpServer(ThreadingHTTPServer):
    """Knows its open connections, so that it can end them and wait for their threads."""

    daemon_threads = False
    block_on_close = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], edge: Edge) -> None:
        self.edge = edge
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        super().__init__(address, _Handler)

    def opened(self, connection: socket.socket) -> None:
        """A connection's thread begins."""
        with self._lock:
            self._open.add(connection)

    def closed(self, connection: socket.socket) -> None:
        """A connection's thread ends."""
        with self._lock:
            self._open.discard(connection)

    def close_connections(self) -> None:
        """Shut every open connection; their threads end by themselves."""
        with self._lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # the client was faster


class _ConnectionCut(Exception):
    """A fault ends the connection without another byte."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: HttpServer

    def setup(self) -> None:
        super().setup()
        self.server.opened(self.connection)

    def finish(self) -> None:
        self.server.closed(self.connection)
        super().finish()

    def handle(self) -> None:
        try:
            super().handle()
        except (ConnectionError, TimeoutError, _ConnectionCut):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        logger.debug(format, *args)

    def do_GET(self) -> None:
        """Serve any method; the API decides which it has."""
        if self.server.edge.stopping.is_set():
            raise _ConnectionCut
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        plain = _unauthenticated(self.path) if self.command == "GET" else None
        if plain is not None:
            self._send(plain)
            return
        try:
            request = self._request(body)
        except ApiProblem as problem:
            self._send(_failure(problem), problem.retry_after)
            return
        self._serve(request)

    def do_POST(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        self.do_GET()

    def do_PATCH(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def _request(self, body: bytes) -> ApiRequest:
        edge = self.server.edge
        user = edge.api.identities.authenticate(self.headers.get("Authorization", ""))
        content_type = self.headers.get("Content-Type", "").partition(";")[0].strip()
        parsed = parse_request(self.command, self.path)
        return replace(parsed, user=user, content_type=content_type, body=body)

    def _serve(self, request: ApiRequest) -> None:
        edge = self.server.edge
        faults = edge.faults.take(_match(request))
        kinds = {fault.kind for fault in faults}
        retry_after: int | None = None
        try:
            self._suffer(faults)
            answer = edge.api.respond(request)
        except ApiProblem as problem:
            answer, retry_after = _failure(problem), problem.retry_after
        if isinstance(answer, WatchStream):
            edge.api.record(request, 200)
            self._stream(answer, duplicate="duplicate-events" in kinds)
            return
        edge.api.record(request, answer.code)
        if "lose-answer" in kinds:
            raise _ConnectionCut
        self._send(answer, retry_after, truncate="truncate" in kinds)

    def _suffer(self, faults: list[Fault]) -> None:
        """The faults that strike before anything is done."""
        for fault in faults:
            if fault.kind == "delay":
                self.server.edge.stopping.wait(fault.seconds)
            elif fault.kind == "drop":
                raise _ConnectionCut
            elif fault.kind == "answer":
                reason = _REASONS.get(fault.code, "InternalError")
                message = f"a fault was ordered: HTTP {fault.code}"
                raise ApiProblem(fault.code, reason, message, retry_after=fault.retry_after)

    def _send(
        self, answer: Answer, retry_after: int | None = None, *, truncate: bool = False
    ) -> None:
        """Head and body in one segment where they fit, so that no delayed acknowledgement waits."""
        lines = [
            f"HTTP/1.1 {answer.code} {responses.get(answer.code, '')}",
            "Content-Type: application/json",
            f"Content-Length: {len(answer.body)}",
        ]
        if retry_after is not None:
            lines.append(f"Retry-After: {retry_after}")
        if self.close_connection:
            lines.append("Connection: close")
        head = "\r\n".join(lines).encode() + b"\r\n\r\n"
        if truncate:
            self.wfile.write(head + answer.body[: len(answer.body) // 2])
            raise _ConnectionCut
        self.wfile.write(head + answer.body)

    def _stream(self, stream: WatchStream, *, duplicate: bool) -> None:
        head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked"
        self.wfile.write(head.encode() + b"\r\n\r\n")
        for event in stream.events(self._is_over):
            chunk = f"{len(event):x}\r\n".encode() + event + b"\r\n"
            self.wfile.write(chunk * 2 if duplicate else chunk)
        self.wfile.write(b"0\r\n\r\n")

    def _is_over(self) -> bool:
        """The server stops, or the client has closed its side."""
        if self.server.edge.stopping.is_set():
            raise _ConnectionCut
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)


_REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def _failure(problem: ApiProblem) -> Answer:
    return Answer(problem.code, encode(problem.status()))


def _match(request: ApiRequest) -> RequestMatch:
    address = request.address
    return RequestMatch(
        verb=request.verb,
        resource=address.resource.plural,
        subresource=address.subresource,
        namespace=address.namespace,
        name=address.name,
        user=request.user.name,
    )


def _unauthenticated(target: str) -> Answer | None:
    """Health, version and discovery, which need no token; None for everything else."""
    path = urlsplit(target).path.rstrip("/")
    if path in _HEALTH:
        return Answer(200, b"ok")
    if path == "/version":
        return Answer(200, encode(_VERSION))
    if path == "/api":
        return Answer(200, encode({"kind": "APIVersions", "versions": ["v1"]}))
    if path == "/apis":
        return Answer(200, encode(group_list()))
    parts = path.strip("/").split("/")
    found = None
    if parts == ["api", "v1"]:
        found = discovery("", "v1")
    elif parts[0] == "apis" and len(parts) == 3:
        found = discovery(parts[1], parts[2])
        if found is None:
            return _failure(problems.no_such_path())
    return Answer(200, encode(found)) if found is not None else None
