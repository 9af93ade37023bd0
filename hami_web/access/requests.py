"""The actor of a request, for the audit log."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest

from hami_web.access.audit import Actor
from hami_web.access.caller import Caller, Source
from hami_web.access.identity import caller_of
from hami_web.access.network import client_address
from hami_web.logs import REQUEST_ID

NOBODY: Final = Caller("", Source.ANONYMOUS, None)


def actor_of(request: HttpRequest, caller: Caller | None = None) -> Actor:
    """Who sent it, unless another caller is given (one who is just signing in)."""
    return Actor.of(
        caller or caller_of(request) or NOBODY,
        address=client_address(request),
        request_id=str(request.META.get(REQUEST_ID, "")),
    )
