"""The stream that tells open pages what to fetch again (Server-Sent Events)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import get_language

from hami_web.access.identity import caller_of, visibility_of
from hami_web.access.visibility import Visibility
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.fragments import PartStyle, drawn_parts
from hami_web.dashboard.freshness import Freshness
from hami_web.dashboard.installed import installed_map
from hami_web.dashboard.live import COALESCE_S, EVERYTHING, Change, LiveMap, differences
from hami_web.dashboard.seen import hide_unseen

HEARTBEAT_S = 5.0
"""Every beat carries the age of the data, so that a page notices both silences."""
LIFE_S = 600.0
"""A stream ends after this time and the browser opens another: restarts never hang on one."""
RETRY_MS = 3000
AGAIN = "event: again\ndata: {}\n\n"
"""The stream ends as planned; open the next one at once."""


class LiveChanges:
    """What pages of the whole map must fetch."""

    def __init__(self, live: LiveMap) -> None:
        self._live = live

    def shown(self) -> ClusterMap | None:
        """The map that these pages show."""
        return self._live.current()

    async def since(self, version: int) -> tuple[int, Change | None]:
        """The version that was looked at, and what changed up to it; None when nothing did."""
        change = self._live.changes_since(version)
        return (change.version if change else version), change


class SeenChanges:
    """What the pages of one caller must fetch: changes of what is hidden from them are none."""

    def __init__(self, live: LiveMap, seen: Visibility) -> None:
        self._live = live
        self._seen = seen
        self._told: ClusterMap | None = None

    def shown(self) -> ClusterMap | None:
        """As :meth:`LiveChanges.shown`, without what is hidden."""
        return self._told

    async def since(self, version: int) -> tuple[int, Change | None]:
        """As :meth:`LiveChanges.since`; a page whose map is not known fetches everything."""
        current = self._live.current()
        if current is None:
            return version, None
        # May ask the API server.
        new = await asyncio.to_thread(hide_unseen, current, self._seen)
        old, self._told = self._told, new
        if old is None:
            known = version == new.version
            return new.version, None if known else Change(new.version, (EVERYTHING,))
        changed = differences(old, new)
        return new.version, Change(new.version, tuple(changed)) if changed else None


def seen_changes(request: HttpRequest, version: int) -> AsyncIterator[str]:
    """The stream for the caller of a request, who is looked at anew when it ends: the life of
    one stream is no longer than an answer about its caller is believed."""
    live, seen, caller = installed_map(), visibility_of(request), caller_of(request)
    changes = LiveChanges(live) if seen.everything else SeenChanges(live, seen)
    known = caller is not None and not caller.is_anonymous
    life_s = min(LIFE_S, settings.ACCESS_CACHE_SECONDS) if known else LIFE_S
    return stream_changes(live, version, changes, life_s=life_s, style=_style(request))


def _style(request: HttpRequest) -> PartStyle | None:
    """How the page has the parts that it asks for."""
    if "parts" not in request.GET:
        return None
    return PartStyle(get_language() or "en", brief=request.GET["parts"] == "brief")


async def stream_changes(
    live: LiveMap,
    version: int,
    changes: LiveChanges | SeenChanges | None = None,
    *,
    life_s: float = LIFE_S,
    heartbeat_s: float = HEARTBEAT_S,
    style: PartStyle | None = None,
) -> AsyncIterator[str]:
    """Yield events for a page that shows ``version``: ``change``, and ``age`` on every beat.

    With a ``style`` a small change carries its parts as HTML, so that nobody has to fetch them.
    """
    source = changes or LiveChanges(live)
    yield f"retry: {RETRY_MS}\n\n"
    ends_at = time.monotonic() + life_s
    while True:
        looked_at, change = await source.since(version)
        if change is not None:
            version = change.version
            shown = source.shown() if style else None
            parts = (
                await asyncio.to_thread(drawn_parts, shown, change.changed, style)
                if style and shown is not None and shown.version == version
                else {}
            )
            yield change_event(change, parts)
        yield _age_event(live.freshness())
        left_s = ends_at - time.monotonic()
        if left_s <= 0 or live.closed:
            break
        await live.wait_beyond(looked_at, min(heartbeat_s, left_s))
        if not live.closed:
            await asyncio.sleep(min(COALESCE_S, max(left_s, 0)))
    if not live.closed:
        yield AGAIN


def change_event(change: Change, parts: Mapping[str, str]) -> str:
    """What a page is told of a change."""
    told = {"version": change.version, "changed": change.changed}
    payload = json.dumps({**told, "parts": parts} if parts else told, ensure_ascii=False)
    return f"id: {change.version}\nevent: change\ndata: {payload}\n\n"


def _age_event(freshness: Freshness) -> str:
    payload = json.dumps({"age_s": freshness.age_s, "stale": freshness.is_stale})
    return f"event: age\ndata: {payload}\n\n"
