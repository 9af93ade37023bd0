"""The codec of hami.io/mutex.lock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from hami_web.core.errors import MalformedContract
from hami_web.core.nodelock import NodeLock, decode_lock, encode_lock

MOMENT = datetime(2026, 9, 21, 14, 13, 20, tzinfo=UTC)


def test_a_lock_reads_and_writes_as_hamis() -> None:
    text = "2026-09-21T14:13:20Z,team-a,job-1"
    assert decode_lock(text) == NodeLock(MOMENT, "team-a", "job-1")
    assert encode_lock(decode_lock(text)) == text


def test_a_lock_is_written_in_utc_without_fraction() -> None:
    local = MOMENT.astimezone(timezone(timedelta(hours=8))).replace(microsecond=5)
    assert encode_lock(NodeLock(local, "a", "b")) == "2026-09-21T14:13:20Z,a,b"


def test_a_lock_with_an_offset_is_the_same_moment() -> None:
    assert decode_lock("2026-09-21T22:13:20+08:00,team-a,job-1").locked_at == MOMENT


def test_a_bare_time_is_a_lock_without_holder() -> None:
    lock = decode_lock("2026-09-21T14:13:20Z")
    assert (lock.namespace, lock.pod_name) == ("", "")
    assert not lock.held_by("team-a", "job-1")


@pytest.mark.parametrize("text", ["", "x", "x,a,b", "2026-09-21T14:13:20,a,b", "a,b", "t,a,b,c"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(MalformedContract):
        decode_lock(text)
