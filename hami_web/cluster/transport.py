"""HTTP to the API server: bytes in, bytes out, errors of ours.

Connection, TLS and credentials are the official client's configuration; bodies never pass through
its models (seconds and hundreds of MB for a large list).
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol, cast
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from hami_web.cluster.errors import ClusterError, OutcomeUnclear, Unreachable, error_of
from hami_web.cluster.pacing import Pace, Priority

CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 20.0
_NOT_SENT = (NewConnectionError, ConnectTimeoutError)
_ERROR_TEXT_MAX = 500

__all__ = ["Connection", "LineStream", "Priority", "Request", "Transport"]


class Connection(Protocol):
    """What is needed of the official client: where, with which pool, as whom."""

    @property
    def host(self) -> str: ...

    @property
    def pool(self) -> urllib3.PoolManager: ...

    def auth_headers(self) -> Mapping[str, str]: ...

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Read the credentials anew; True when they differ from those that were refused."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """One API call; ``read_timeout_s`` bounds the silence between two reads, not the whole."""

    method: str
    path: str
    query: Mapping[str, str | int] | None = None
    body: object | None = None
    content_type: str = "application/json"
    read_timeout_s: float = READ_TIMEOUT_S
    priority: Priority = Priority.URGENT

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Transport:
    """Sends requests over the connection pool of one process; safe for threads.

    ``pace`` bounds how many are sent in a second; None sends at once.
    """

    def __init__(
        self, connection: Connection, *, user_agent: str, pace: Pace | None = None
    ) -> None:
        self._connection = connection
        self._user_agent = user_agent
        self._pace = pace

    def send(self, request: Request) -> bytes:
        """Return the body of a 2xx answer; raise ClusterError otherwise.

        A read whose kept-alive connection turns out dead is sent once more; a write never is.
        """
        try:
            return self._send_once(request)
        except OutcomeUnclear:
            if request.method != "GET":
                raise
            return self._send_once(request)

    def stream(self, request: Request) -> LineStream:
        """Open a streaming answer, split into lines."""
        return LineStream(str(request), self._open(request))

    def _send_once(self, request: Request) -> bytes:
        response = self._open(request)
        try:
            return response.read()
        except (HTTPError, OSError) as error:
            raise OutcomeUnclear(f"{request}: reading the answer: {error}") from error
        finally:
            response.release_conn()

    def _open(self, request: Request) -> urllib3.BaseHTTPResponse:
        """Send; a token that is refused is read again and, if it was replaced, tried once more.

        Nothing is done for whom the API server does not know, so that repeats no write.
        """
        who = dict(self._connection.auth_headers())
        response = self._request(request, who)
        if response.status == HTTPStatus.UNAUTHORIZED and self._connection.renew(who):
            response.drain_conn()
            response.release_conn()
            response = self._request(request, dict(self._connection.auth_headers()))
        if response.status >= 300:
            raise _refusal(request, response)
        return response

    def _request(self, request: Request, who: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        if self._pace is not None:
            self._pace.take(request.priority)
        url = self._connection.host + request.path
        if request.query:
            url = f"{url}?{urlencode(request.query)}"
        try:
            return self._connection.pool.request(
                request.method,
                url,
                body=None if request.body is None else json.dumps(request.body).encode(),
                headers=self._headers(request) | dict(who),
                timeout=urllib3.Timeout(connect=CONNECT_TIMEOUT_S, read=request.read_timeout_s),
                retries=False,
                redirect=False,
                preload_content=False,
            )
        except _NOT_SENT as error:
            raise Unreachable(f"{request}: no connection: {error}") from error
        except (HTTPError, OSError) as error:
            raise OutcomeUnclear(f"{request}: no answer: {error}") from error

    def _headers(self, request: Request) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": self._user_agent}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        return headers


class LineStream:
    """Lines of a streaming answer; ``close`` ends a blocked read from another thread."""

    def __init__(self, name: str, response: urllib3.BaseHTTPResponse) -> None:
        self._name = name
        self._response = response
        self._closed = threading.Event()
        self._being_read = False

    def __iter__(self) -> Iterator[bytes]:
        self._being_read = True
        pending = b""
        try:
            for chunk in self._response.stream(decode_content=True):
                *lines, pending = (pending + chunk).split(b"\n")
                yield from (line for line in lines if line.strip())
        except (HTTPError, OSError, ValueError) as error:
            if self._closed.is_set():
                return
            raise OutcomeUnclear(f"{self._name}: the stream broke: {error}") from error
        finally:
            self._response.close()

    def close(self) -> None:
        """Shut the socket down; the connection is not used again."""
        self._closed.set()
        with contextlib.suppress(HTTPError, OSError, ValueError, RuntimeError):
            cast(urllib3.HTTPResponse, self._response).shutdown()
        if not self._being_read:
            self._response.close()


def _refusal(request: Request, response: urllib3.BaseHTTPResponse) -> ClusterError:
    """Read the Status of a refused request into an error."""
    try:
        body = response.read()
    except (HTTPError, OSError):
        body = b""
    finally:
        response.release_conn()
    return error_of(
        response.status,
        f"{request}: {response.status} {_message(body)}",
        response.headers.get("Retry-After"),
    )


def _message(body: bytes) -> str:
    with contextlib.suppress(ValueError):
        status = json.loads(body)
        if isinstance(status, dict) and isinstance(status.get("message"), str):
            return str(status["message"])[:_ERROR_TEXT_MAX]
    return body[:_ERROR_TEXT_MAX].decode(errors="replace")
