"""Answers of the web service, over its REST API."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec import Struct

from hami_web.kubectl import shapes
from hami_web.kubectl.source import CommandFailed, Unserved, WhatIfQuestion
from hami_web.kubectl.wording import tr

TIMEOUT_S: Final = 20.0
PAGE: Final = 200
_UNSERVED: Final = frozenset({502, 503, 504})
"""Statuses that a proxy, or a web role without its database, answers with."""
_Shape = TypeVar("_Shape")


class _FieldError(Struct):
    field: str = ""
    value: object = None
    allowed: object = None


class _Problem(Struct):
    title: str = ""
    code: str = ""
    detail: str = ""
    errors: list[_FieldError] = []
    request_id: str = ""


class _Results(Struct):
    results: msgspec.Raw
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Server:
    """Where the web service is, and as whom to ask it; ``ca`` is a file of certificates."""

    url: str
    token: str = ""
    ca: Path | None = None

    def context(self) -> ssl.SSLContext | None:
        """Verification of the server's certificate; None without TLS."""
        if urlsplit(self.url).scheme != "https":
            return None
        try:
            return ssl.create_default_context(cafile=self.ca)
        except OSError as error:
            raise CommandFailed(
                tr("{file}: no certificates: {error}").format(file=self.ca, error=error)
            ) from error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token goes to the server that was named, and nowhere else."""

    def redirect_request(self, *_args: object) -> None:
        return None


class RestSource:
    """The source that knows most: history, holds, quotas, the cluster's policy."""

    note = ""

    def __init__(self, server: Server) -> None:
        parts = urlsplit(server.url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise CommandFailed(
                tr("--server: {value} is not allowed; allowed: an http or https address").format(
                    value=server.url
                )
            )
        self._base = server.url.rstrip("/")
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._token = server.token
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        if (context := server.context()) is not None:
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def nodes(self) -> Sequence[shapes.Node]:
        """All nodes, by name."""
        return self.all_rows("nodes", {"ordering": "name"}, shapes.Node)

    def devices(self) -> Sequence[shapes.Device]:
        """All GPUs by node and index."""
        found = self.all_rows("gpus", {}, shapes.Device)
        return sorted(found, key=lambda gpu: (gpu.node, gpu.index, gpu.uuid))

    def reservations(self, namespace: str | None) -> Sequence[shapes.Reservation]:
        """Live reservations of a namespace, or of all."""
        query = {"live": "true"} | ({} if namespace is None else {"namespace": namespace})
        found = self.all_rows("reservations", query, shapes.Reservation)
        return sorted(found, key=reservation_order)

    def cluster_map(self) -> shapes.ClusterMap:
        """The whole map at once."""
        return self._decode(self._send("map"), shapes.ClusterMap)

    def why(self, namespace: str, pod: str) -> Sequence[shapes.Why]:
        """What was said of a Pod, newest first."""
        address = f"pods/{quote(namespace, safe='')}/{quote(pod, safe='')}/why"
        page = self._decode(self._send(address), _Results)
        return self._decode(page.results, list[shapes.Why])

    def what_if(self, question: WhatIfQuestion) -> shapes.WhatIf:
        """By the rules of the extender, with the cluster's policy."""
        return self._decode(self._send("what-if", question), shapes.WhatIf)

    def drain_plan(self, profile: str, count: int) -> shapes.DrainPlan:
        """The fewest Pods to move."""
        query = urlencode({"profile": profile, "count": count})
        return self._decode(self._send(f"drain-plan?{query}"), shapes.DrainPlan)

    def ask(self, address: str, body: object = None) -> object:
        """Any answer as it is; ``body`` makes it a POST."""
        return self._decode(self._send(address, body), object)

    def all_rows(self, name: str, query: dict[str, str], shape: type[_Shape]) -> list[_Shape]:
        """Every page of a list."""
        address: str | None = f"{name}?{urlencode(query | {'limit': str(PAGE)})}"
        rows: list[_Shape] = []
        while address:
            page = self._decode(self._send(address), _Results)
            rows += self._decode(page.results, list[shape])  # type: ignore[valid-type]
            address = page.next
        return rows

    def _send(self, address: str, body: object = None) -> bytes:
        """GET, or POST with a body. ``next`` of a page is an address of the same server."""
        parts = urlsplit(address)
        if parts.netloc or address.startswith("/"):
            url = f"{self._origin}{parts.path}?{parts.query}"
        else:
            url = f"{self._base}/api/v1/{address}"
        headers = {"Accept": "application/json", "User-Agent": "kubectl-hami"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None
        if body is not None:
            data, headers["Content-Type"] = msgspec.json.encode(body), "application/json"
        request = urllib.request.Request(url, data=data, headers=headers)  # noqa: S310  # checked
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            raise _refusal(error) from error
        except ssl.SSLError as error:
            raise CommandFailed(_certificate(error)) from error
        except (urllib.error.URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLError):
                raise CommandFailed(_certificate(reason)) from error
            raise Unserved(
                tr("the web service at {url} does not answer: {reason}").format(
                    url=self._base, reason=reason
                )
            ) from error

    def _decode(self, body: bytes | msgspec.Raw, shape: type[_Shape]) -> _Shape:
        try:
            return msgspec.json.decode(body, type=shape)
        except msgspec.MsgspecError as error:
            text = tr("{url} does not answer as our web service does: {error}")
            raise CommandFailed(text.format(url=self._base, error=error)) from error


def reservation_order(item: shapes.Reservation) -> tuple[str, str, int, int]:
    """By Pod, then by container and device."""
    return (item.namespace, item.pod, item.container_index, item.device_index)


def _certificate(error: ssl.SSLError) -> str:
    text = tr("the web service's certificate is not trusted: {error}; name its CA with --ca-file")
    return text.format(error=error)


def _refusal(error: urllib.error.HTTPError) -> CommandFailed:
    """A problem in words: title, detail, and each field with value and what is allowed."""
    try:
        problem = msgspec.json.decode(error.read(), type=_Problem)
    except (msgspec.MsgspecError, OSError, HTTPException):
        problem = _Problem(title=str(error.reason))
    lines = [f"{error.code} {problem.title}: {problem.detail}".rstrip(": ")]
    for item in problem.errors:
        text = tr("{field}: {value} is not allowed; allowed: {allowed}")
        lines.append("  " + text.format(field=item.field, value=item.value, allowed=item.allowed))
    if problem.code:
        request = f", request {problem.request_id}" if problem.request_id else ""
        lines.append(f"  ({problem.code}{request})")
    kind = Unserved if error.code in _UNSERVED else CommandFailed
    return kind("\n".join(lines))
