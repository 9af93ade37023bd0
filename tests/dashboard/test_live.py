"""What changed, and the stream that tells it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

from hami_web.access.caller import Caller, Source
from hami_web.access.roles import Role
from hami_web.access.visibility import Visibility
from hami_web.dashboard.cells import CellState
from hami_web.dashboard.cluster_map import ClusterMap, NodeBlock
from hami_web.dashboard.events import stream_changes
from hami_web.dashboard.fragments import MOST, PartStyle, drawn_parts
from hami_web.dashboard.freshness import Freshness
from hami_web.dashboard.live import Change
from hami_web.dashboard.seen import hide_unseen

from .given import GivenMap
from .samples import cell, cluster_map, row


def shown(live: GivenMap, *cells, version: int, **more) -> None:
    rows = (row("n", 0, cells), row("n", 1))
    live.show(ClusterMap(version, (NodeBlock("n", rows, **more),)))


def taken() -> object:
    return cell(0, 1, CellState.BOUND, "1g.5gb", "a/b")


async def first_events(live: GivenMap, version: int, count: int) -> list[str]:
    stream = stream_changes(live, version, life_s=5, heartbeat_s=0.05)
    return [await anext(stream) for _ in range(count)]


def test_a_page_of_the_newest_version_has_nothing_to_fetch(live: GivenMap) -> None:
    assert live.changes_since(live.current().version) is None


def test_a_change_names_only_the_gpu_that_changed(live: GivenMap) -> None:
    shown(live, version=10)
    shown(live, taken(), version=11)
    assert live.changes_since(10) == Change(11, ("GPU-n-0-5f0c",))


def test_a_change_of_the_nodes_is_a_change_of_everything(live: GivenMap) -> None:
    shown(live, version=10)
    shown(live, version=11, notes=("stale",))
    assert live.changes_since(10) == Change(11, ("*",))


def test_a_page_of_an_unknown_version_fetches_everything(live: GivenMap) -> None:
    shown(live, version=10)
    shown(live, taken(), version=11)
    assert live.changes_since(99).changed == live.changes_since(3).changed == ("*",)


def test_an_equal_map_is_no_new_version(live: GivenMap) -> None:
    shown(live, version=10)
    shown(live, version=12)
    assert live.current().version == 10


def test_a_waiting_pod_changes_the_summary_alone(live: GivenMap) -> None:
    before = live.current()
    live.show(replace(before, version=before.version + 1, waiting=()))
    assert live.changes_since(before.version).changed == ("summary",)


def test_the_stream_tells_version_and_changes(live: GivenMap) -> None:
    retry, change, age = asyncio.run(first_events(live, 0, 3))
    assert retry.startswith("retry: ")
    assert change.startswith("id: 7\nevent: change\ndata: ")
    assert json.loads(change.split("data: ")[1]) == {"version": 7, "changed": ["*"]}
    assert json.loads(age.split("data: ")[1]) == {"age_s": 2.0, "stale": False}


def test_a_silent_stream_beats(live: GivenMap) -> None:
    events = asyncio.run(first_events(live, live.current().version, 3))
    assert [event.split("\n")[0] for event in events[1:]] == ["event: age", "event: age"]


def test_a_change_ends_the_wait(live: GivenMap) -> None:
    async def scenario() -> str:
        stream = stream_changes(live, 7, life_s=30, heartbeat_s=30)
        await anext(stream)
        await anext(stream)
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0.01)
        live.show(cluster_map(version=8))
        live.show(ClusterMap(9, ()))
        return await asyncio.wait_for(waiting, 5)

    assert '"changed": ["*"]' in asyncio.run(scenario())


def test_a_stream_has_an_end(live: GivenMap) -> None:
    async def scenario() -> int:
        return len([event async for event in stream_changes(live, 0, life_s=0.05, heartbeat_s=9)])

    assert asyncio.run(scenario()) >= 3


def test_closing_ends_every_stream(live: GivenMap) -> None:
    async def scenario() -> None:
        stream = stream_changes(live, 7, life_s=30, heartbeat_s=30)
        await anext(stream)
        await anext(stream)
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0.01)
        live.close()
        await asyncio.wait_for(waiting, 5)  # the last beat
        assert [event async for event in stream] == []

    asyncio.run(scenario())


def test_a_known_failure_makes_data_stale_sooner() -> None:
    assert not Freshness(20.0).is_stale
    assert Freshness(20.0, "refused").is_stale
    assert Freshness(None).is_stale


ENGLISH = PartStyle("en")
NOTHING = Visibility(Caller("x", Source.LOCAL, Role.VIEWER, frozenset()))


async def _told(live: GivenMap, version: int, style: PartStyle | None) -> dict[str, str]:
    stream = stream_changes(live, version, life_s=5, heartbeat_s=0.05, style=style)
    await anext(stream)
    event = await anext(stream)
    return json.loads(event.split("data: ", 1)[1]).get("parts", {})


def test_a_small_change_carries_its_parts_in_the_language_of_the_page(live: GivenMap) -> None:
    shown(live, version=10)
    shown(live, taken(), version=11)
    parts = asyncio.run(_told(live, 10, ENGLISH))
    assert parts.keys() == {"GPU-n-0-5f0c", "summary"}
    assert "a/b" in parts["GPU-n-0-5f0c"]
    assert "Memory slices of GPU 0" in parts["GPU-n-0-5f0c"]
    chinese = asyncio.run(_told(live, 10, PartStyle("zh-hans")))
    assert "Memory slices" not in chinese["GPU-n-0-5f0c"]
    assert sum(len(part.encode()) for part in parts.values()) < 5000


def test_a_page_that_wants_no_parts_and_a_large_change_get_names_alone(live: GivenMap) -> None:
    shown(live, version=10)
    shown(live, taken(), version=11)
    assert asyncio.run(_told(live, 10, None)) == {}
    shown(live, version=12, notes=("stale",))
    assert asyncio.run(_told(live, 11, ENGLISH)) == {}
    assert drawn_parts(live.current(), [f"GPU-{n}" for n in range(MOST + 1)], ENGLISH) == {}


def test_parts_name_nothing_that_the_caller_may_not_see(live: GivenMap) -> None:
    shown(live, version=10)
    shown(live, taken(), version=11)
    assert "a/b" in drawn_parts(live.current(), ["GPU-n-0-5f0c"], ENGLISH)["GPU-n-0-5f0c"]
    hidden = hide_unseen(live.current(), NOTHING)
    assert "a/b" not in drawn_parts(hidden, ["GPU-n-0-5f0c"], ENGLISH)["GPU-n-0-5f0c"]
    # Kept by the map itself: the next of the same version is another one.
    assert "a/b" in drawn_parts(live.current(), ["GPU-n-0-5f0c"], ENGLISH)["GPU-n-0-5f0c"]
