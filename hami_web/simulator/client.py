"""The small API client of the simulated scheduler and kubelets: JSON over kept-alive HTTP."""

from __future__ import annotations

import http.client
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import msgspec

from hami_web.simulator.documents import JsonObject, decode_object
from hami_web.simulator.patches import MERGE


class ApiError(Exception):
    """The API server refused; ``reason`` is the Status reason, empty where there is none."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An API server: base URL, bearer token, and for https the file of its CA."""

    url: str
    token: str = ""
    ca_file: Path | None = None
    timeout: float = 30.0


class ApiClient:
    """Safe to use from several threads; :meth:`close` ends its connections.

    Raises :class:`ApiError` for refusals, ``OSError`` or ``http.client.HTTPException`` when no
    whole answer came.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._split = urlsplit(endpoint.url)
        self._tls: ssl.SSLContext | None = None
        if self._split.scheme == "https":
            self._tls = ssl.create_default_context(cafile=endpoint.ca_file)
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: dict[str, str] | None = None,
        content_type: str = "application/json",
    ) -> JsonObject:
        """Send one request and return the decoded answer."""
        data = None if body is None else msgspec.json.encode(body)
        target = f"{path}?{urlencode(params)}" if params else path
        connection = self._take()
        try:
            response = self._send(connection, method, target, data, content_type)
            answer = response.read()
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            with self._lock:
                self._idle.append(connection)
        return _checked(response.status, answer)

    def get(self, path: str, params: dict[str, str] | None = None) -> JsonObject:
        return self.request("GET", path, params=params)

    def create(self, path: str, document: JsonObject) -> JsonObject:
        return self.request("POST", path, document)

    def replace(self, path: str, document: JsonObject) -> JsonObject:
        return self.request("PUT", path, document)

    def patch(self, path: str, patch: object, content_type: str = MERGE) -> JsonObject:
        return self.request("PATCH", path, patch, content_type=content_type)

    def delete(self, path: str, options: JsonObject | None = None) -> JsonObject:
        return self.request("DELETE", path, options)

    def watch(self, path: str, params: dict[str, str]) -> Watch:
        """Open a watch; raises :class:`ApiError` where the server refuses it."""
        connection = self._connect(self._endpoint.timeout)
        try:
            target = f"{path}?{urlencode(params | {'watch': 'true'})}"
            response = self._send(connection, "GET", target)
            if response.status != 200:
                _checked(response.status, response.read())
        except BaseException:
            connection.close()
            raise
        return Watch(connection, response)

    def close(self) -> None:
        """Close idle connections; watches are closed by whoever opened them."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> http.client.HTTPConnection:
        """An idle connection that the server has not closed, or a new one."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._connect(self._endpoint.timeout)
            readable, _, _ = select.select([connection.sock], [], [], 0)
            if not readable:
                return connection
            connection.close()

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection
        if self._tls is not None:
            connection = http.client.HTTPSConnection(
                self._split.netloc, timeout=timeout, context=self._tls
            )
        else:
            connection = http.client.HTTPConnection(self._split.netloc, timeout=timeout)
        connection.connect()
        return connection

    def _send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        data: bytes | None = None,
        content_type: str = "",
    ) -> http.client.HTTPResponse:
        headers = {"Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = content_type
        if self._endpoint.token:
            headers["Authorization"] = f"Bearer {self._endpoint.token}"
        connection.request(method, target, data, headers)
        return connection.getresponse()


class Watch:
    """One open watch: iterate over its events, close it from any thread."""

    def __init__(
        self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        self._connection = connection
        self._response = response

    def __iter__(self) -> Iterator[JsonObject]:
        """Decoded events until the server ends the watch or :meth:`interrupt` was called."""
        while True:
            try:
                line = self._response.readline()
            except (OSError, ValueError, http.client.HTTPException):
                return
            if not line:
                return
            yield decode_object(line)

    def interrupt(self) -> None:
        """End the iteration from another thread."""
        raw = self._connection.sock
        if raw is not None:
            try:
                raw.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # the server was faster

    def close(self) -> None:
        """Free the connection; not while another thread iterates."""
        self._response.close()
        self._connection.close()


def _checked(code: int, answer: bytes) -> JsonObject:
    if code < 400:
        return decode_object(answer)
    try:
        status = decode_object(answer)
    except msgspec.DecodeError:
        status = {"message": answer[:256].decode(errors="replace")}
    raise ApiError(code, str(status.get("reason") or ""), str(status.get("message") or ""))
