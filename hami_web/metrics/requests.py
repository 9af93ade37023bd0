"""How long the web role takes to answer, by address pattern."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from inspect import iscoroutinefunction
from typing import Any, Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from hami_web.metrics import table
from hami_web.metrics.series import Family
from hami_web.scheduling.measures import Durations

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER: Final = "other"
"""Methods that nobody defined, and addresses without a pattern: both are chosen by the caller."""


class Requests:
    """Durations by method, pattern and class of status, for the life of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[tuple[str, str, str], Durations] = {}

    def note(self, request: HttpRequest, status: int, seconds: float) -> None:
        """Count one answer."""
        match = request.resolver_match
        method = request.method if request.method in METHODS else None
        key = (method or OTHER, match.route if match else OTHER, f"{status // 100}xx")
        with self._lock:
            durations = self._found.setdefault(key, Durations())
        durations.observe(seconds)

    def collect(self) -> Iterator[Family]:
        """One histogram for each kind of request that came."""
        with self._lock:
            found = sorted(self._found.items())
        yield Family(table.REQUESTS, durations=[(key, each.snapshot()) for key, each in found])


REQUESTS: Final = Requests()
"""Of this process."""


@sync_and_async_middleware
def time_requests(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Middleware, the outermost: what is timed is the answer with everything around it.

    A stream counts until it begins.
    """
    if iscoroutinefunction(get_response):

        async def timed_later(request: HttpRequest) -> HttpResponseBase:
            began = time.perf_counter()
            response: HttpResponseBase = await get_response(request)
            REQUESTS.note(request, response.status_code, time.perf_counter() - began)
            return response

        return timed_later

    def timed(request: HttpRequest) -> HttpResponseBase:
        began = time.perf_counter()
        response: HttpResponseBase = get_response(request)
        REQUESTS.note(request, response.status_code, time.perf_counter() - began)
        return response

    return timed
