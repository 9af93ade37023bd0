"""The stream that tells open pages what to fetch again (Server-Sent Events)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

from hami_web.dashboard.freshness import Freshness
from hami_web.dashboard.live import COALESCE_S, Change, LiveMap

HEARTBEAT_S = 5.0
"""Every beat carries the age of the data, so that a page notices both silences."""
LIFE_S = 600.0
"""A stream ends after this time and the browser opens another: restarts never hang on one."""
RETRY_MS = 3000


async def stream_changes(
    live: LiveMap, version: int, *, life_s: float = LIFE_S, heartbeat_s: float = HEARTBEAT_S
) -> AsyncIterator[str]:
    """Yield events for a page that shows ``version``: ``change``, and ``age`` on every beat."""
    yield f"retry: {RETRY_MS}\n\n"
    ends_at = time.monotonic() + life_s
    while True:
        change = live.changes_since(version)
        if change is not None:
            version = change.version
            yield _change_event(change)
        yield _age_event(live.freshness())
        left_s = ends_at - time.monotonic()
        if left_s <= 0 or live.closed:
            return
        await live.wait_beyond(version, min(heartbeat_s, left_s))
        if not live.closed:
            await asyncio.sleep(min(COALESCE_S, max(left_s, 0)))


def _change_event(change: Change) -> str:
    payload = json.dumps({"version": change.version, "changed": change.changed})
    return f"id: {change.version}\nevent: change\ndata: {payload}\n\n"


def _age_event(freshness: Freshness) -> str:
    payload = json.dumps({"age_s": freshness.age_s, "stale": freshness.is_stale})
    return f"event: age\ndata: {payload}\n\n"
