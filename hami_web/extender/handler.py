"""A WSGI callable of Django without middleware: the extender needs its routing and nothing more."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

from django.core.handlers.exception import convert_exception_to_response
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.urls import URLPattern


class ExtenderHandler(WSGIHandler):
    """Serves fixed patterns, whatever middleware and URLs the settings name for other roles.

    The server calls ``retire`` as soon as it is asked to stop, and ``close`` when its worker ends;
    ``close`` ends what the patterns rely on.
    """

    def __init__(
        self,
        patterns: tuple[URLPattern, ...],
        *,
        close: Callable[[], None],
        retire: Callable[[], None],
    ) -> None:
        super().__init__()
        self.close = close
        self.retire = retire
        self._thread = threading.local()
        # Django takes a request's own URL configuration, which may be a hashable sequence.
        self.request_class = type("ExtenderRequest", (WSGIRequest,), {"urlconf": patterns})

    def __call__(self, environ: Any, start_response: Any) -> Any:
        """Answer, and remember for this thread whether the caller was sent away.

        Django's signals around a request are left out: they are for databases and caches, which no
        address here uses, and would take as long as all else that Django does for a call.
        """
        response = self.get_response(self.request_class(environ))
        self._thread.sent_away = response.status_code == HTTPStatus.SERVICE_UNAVAILABLE
        status = f"{response.status_code} {response.reason_phrase}"
        start_response(status, list(response.items()))
        return list(response)

    @property
    def sent_away(self) -> bool:
        """True when this thread's last answer was 503: the caller should ask another replica."""
        return bool(getattr(self._thread, "sent_away", False))

    def load_middleware(self, is_async: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        """Put the view resolution where the chain of middleware would be."""
        self._view_middleware: list[Any] = []
        self._template_response_middleware: list[Any] = []
        self._exception_middleware: list[Any] = []
        resolve = cast(Callable[..., Any], self._get_response)  # type: ignore[attr-defined]
        self._middleware_chain = convert_exception_to_response(resolve)
