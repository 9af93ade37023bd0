"""The dashboard below a path of a host that it shares with others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

# The types of an ASGI application, whose messages are mappings by specification.
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class SubPath:
    """Gives each request the whole path that the browser asked for, ``base`` included.

    Some proxies take the base away before they pass a request on, others keep it, and probes come
    past them: Django gets one form of all.
    """

    def __init__(self, application: Application, base: str) -> None:
        self._application = application
        self._base = base

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not f"{scope['path']}/".startswith(f"{self._base}/"):
            scope = {**scope, "path": f"{self._base}{scope['path']}"}
        await self._application(scope, receive, send)
