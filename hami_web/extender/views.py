"""The calls of kube-scheduler and the API server: read, ask the use-case, answer.

200 with ``Error`` for what is wrong with a call or the moment, 400 for a body that cannot be read,
503 while the cluster is not known yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import msgspec
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from hami_web.cluster.errors import ClusterError
from hami_web.cluster.views import PodView
from hami_web.core.errors import CoreError
from hami_web.core.log_lines import about
from hami_web.extender import admission_wire, wire
from hami_web.scheduling.admission import Admission
from hami_web.scheduling.bind import BindOrder
from hami_web.scheduling.decision_log import DecisionPage
from hami_web.scheduling.decisions import Fits, NotReady, RefusedEverywhere
from hami_web.scheduling.errors import BindError

FILTER_BODY_MAX = 256 * 1024 * 1024
"""Bytes; thousands of whole Node objects when the scheduler sends those."""
BIND_BODY_MAX = 64 * 1024
ADMISSION_BODY_MAX = 8 * 1024 * 1024
"""Bytes; the API server limits an object to 3 MiB, and a review may hold two."""

DECISIONS_MOST: Final = 1000
"""Decisions of one answer."""
DECISIONS_USUAL: Final = 200
CURSOR_MAX: Final = 64

View = Callable[[HttpRequest], HttpResponse]


class Scheduling(Protocol):
    """The use-cases behind the calls."""

    def filter(self, pod: PodView, names: tuple[str, ...]) -> Fits | RefusedEverywhere: ...

    def bind(self, order: BindOrder) -> None: ...

    def decisions_since(self, cursor: str, limit: int) -> DecisionPage: ...

    def not_ready_because(self) -> str | None: ...

    def stale_because(self) -> str | None: ...


class _BadBody(Exception):
    """A body that is refused before it is decoded."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


class ExtenderViews:
    """The extender's HTTP surface over one scheduling core."""

    def __init__(
        self,
        scheduling: Scheduling,
        admission: Admission,
        mistrusted: Callable[[], str] = lambda: "",
    ) -> None:
        """``mistrusted`` says why no client can trust what is served, or an empty text."""
        self._scheduling = scheduling
        self._admission = admission
        self._mistrusted = mistrusted

    def patterns(self) -> tuple[URLPattern, ...]:
        """Addresses, as HAMi has them."""
        return (
            path("filter", _posted(self.filter)),
            path("bind", _posted(self.bind)),
            path("webhook", _posted(self.webhook)),
            path("decisions", _got(self.decisions)),
            path("healthz", _got(self.healthz)),
            path("readyz", _got(self.readyz)),
        )

    def filter(self, request: HttpRequest) -> HttpResponse:
        """Choose a node for a Pod and hold its devices there."""
        try:
            call = wire.decode_filter(_body(request, FILTER_BODY_MAX))
            answer = self._scheduling.filter(call.pod, call.names)
        except (wire.IncompleteCall, CoreError) as error:
            return _json(wire.encode_filter_error(str(error)))
        if isinstance(answer, Fits):
            return _json(wire.encode_fit(call, answer.names))
        return _json(wire.encode_refusal(answer.failed, answer.unresolvable))

    def bind(self, request: HttpRequest) -> HttpResponse:
        """Bind a Pod to the node where its devices are held."""
        try:
            call = wire.decode_bind(_body(request, BIND_BODY_MAX))
            self._scheduling.bind(BindOrder(call.namespace, call.name, call.uid, call.node))
        except (wire.IncompleteCall, BindError, ClusterError, CoreError) as error:
            return _json(wire.encode_bind_result(str(error)))
        return _json(wire.encode_bind_result())

    def webhook(self, request: HttpRequest) -> HttpResponse:
        """Review a Pod that is being created or changed."""
        review = admission_wire.decode_review(_body(request, ADMISSION_BODY_MAX))
        with about(request_id=review.uid):
            verdict = self._admission.review(review.call)
        return _json(admission_wire.encode_review(review, verdict))

    def decisions(self, request: HttpRequest) -> HttpResponse:
        """What was decided since a cursor, for whoever keeps it: ``?since=CURSOR&limit=200``."""
        cursor = request.GET.get("since", "")
        text = request.GET.get("limit", str(DECISIONS_USUAL))
        limit = int(text) if text.isascii() and text.isdigit() and len(text) < 5 else 0
        if not 1 <= limit <= DECISIONS_MOST:
            return _plain(400, f"limit: {text[:20]!r} is not allowed; allowed: 1…{DECISIONS_MOST}")
        if not cursor.isascii() or len(cursor) > CURSOR_MAX:
            return _plain(400, "since: not allowed; allowed: the cursor of an earlier answer")
        return _json(msgspec.json.encode(self._scheduling.decisions_since(cursor, limit)))

    def healthz(self, request: HttpRequest) -> HttpResponse:  # noqa: ARG002
        """The process answers."""
        return HttpResponse("ok\n", content_type="text/plain")

    def readyz(self, request: HttpRequest) -> HttpResponse:
        """This replica leads, and the cluster is known and fresh enough to decide.

        ``?standby=ok`` asks only for the second: for a Deployment whose Service selects the leader
        by label, so that its replicas count as available.
        """
        standing_by = request.GET.get("standby") == "ok"
        scheduling = self._scheduling
        reason = scheduling.stale_because() if standing_by else scheduling.not_ready_because()
        reason = self._mistrusted() or reason
        if reason is not None:
            return _plain(503, reason)
        return HttpResponse("ok\n", content_type="text/plain")


def _posted(view: View) -> View:
    return _edge("POST", view)


def _got(view: View) -> View:
    return _edge("GET", view)


def _edge(method: str, view: View) -> View:
    """Check the method and translate what no answer body can carry into statuses."""

    def answer(request: HttpRequest) -> HttpResponse:
        if request.method != method and not (method == "GET" and request.method == "HEAD"):
            response = _plain(405, f"{request.method} is not allowed here; allowed: {method}")
            response["Allow"] = method
            return response
        try:
            response = view(request)
        except _BadBody as error:
            response = _plain(error.status, str(error))
        except wire.MalformedBody as error:
            response = _plain(400, str(error))
        except NotReady as error:
            response = _plain(503, str(error))
        # Without it the server would send the body in chunks, each a packet of its own.
        response["Content-Length"] = str(len(response.content))
        return response

    return answer


def _body(request: HttpRequest, most: int) -> bytes:
    """Read a body of at most ``most`` bytes; raise what the edge answers otherwise."""
    text = request.META.get("CONTENT_LENGTH") or "0"
    length = int(text) if text.isascii() and text.isdigit() else 0
    if length > most:
        raise _BadBody(413, f"the body has {length} bytes; allowed: {most}")
    body = request.read(length)
    if not body:
        raise _BadBody(400, "Please send a request body")
    return body


def _json(body: bytes) -> HttpResponse:
    return HttpResponse(body, content_type="application/json")


def _plain(status: int, text: str) -> HttpResponse:
    response = HttpResponse(f"{text}\n", status=status, content_type="text/plain; charset=utf-8")
    # Django would log each 503 of a probe as an error.
    response._has_been_logged = True  # type: ignore[attr-defined]  # noqa: SLF001
    return response
