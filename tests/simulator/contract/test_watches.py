"""Watches: order, selection, bookmarks, versions that are gone."""

from __future__ import annotations

import pytest

from hami_web.simulator.client import ApiError
from hami_web.simulator.documents import JsonObject
from tests.simulator.contract.conftest import Kube, config_map


def watched(kube: Kube, path: str, seconds: int = 1, **params: str) -> list[JsonObject]:
    watch = kube.client.watch(path, {"timeoutSeconds": str(seconds), **params})
    try:
        return list(watch)
    finally:
        watch.close()


def told(events: list[JsonObject]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"]["name"]) for event in events]


def test_a_watch_tells_what_happened_after_its_version_in_order(kube: Kube) -> None:
    version = kube.client.get(kube.config_maps)["metadata"]["resourceVersion"]
    kube.client.create(kube.config_maps, config_map("a-map"))
    kube.client.patch(f"{kube.config_maps}/a-map", {"data": {"k": "v"}})
    kube.client.delete(f"{kube.config_maps}/a-map")
    mine = {"resourceVersion": version, "fieldSelector": "metadata.name=a-map"}
    events = watched(kube, kube.config_maps, **mine)
    assert told(events) == [("ADDED", "a-map"), ("MODIFIED", "a-map"), ("DELETED", "a-map")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))


def test_the_deleted_event_carries_the_version_of_the_deletion(kube: Kube) -> None:
    made = kube.client.create(kube.config_maps, config_map("a"))
    kube.client.delete(f"{kube.config_maps}/a")
    mine = {"fieldSelector": "metadata.name=a"}
    version = made["metadata"]["resourceVersion"]
    (event,) = watched(kube, kube.config_maps, resourceVersion=version, **mine)
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(version)


def test_a_watch_without_a_version_starts_with_what_exists(kube: Kube) -> None:
    kube.client.create(kube.config_maps, config_map("a"))
    events = watched(kube, kube.config_maps, fieldSelector="metadata.name=a")
    assert told(events) == [("ADDED", "a")]


def test_objects_enter_and_leave_a_selecting_watch(kube: Kube) -> None:
    made = kube.make_pod("a", labels={"app": "x"})
    version = made["metadata"]["resourceVersion"]
    kube.client.patch(f"{kube.pods}/a", {"metadata": {"labels": {"app": "y"}}})
    kube.client.patch(f"{kube.pods}/a", {"metadata": {"annotations": {"k": "v"}}})
    kube.client.patch(f"{kube.pods}/a", {"metadata": {"labels": {"app": "x"}}})
    events = watched(kube, kube.pods, resourceVersion=version, labelSelector="app=x")
    assert [event["type"] for event in events] == ["DELETED", "ADDED"]
    assert events[0]["object"]["metadata"]["labels"] == {"app": "x"}


def test_a_bound_pod_appears_in_the_watch_of_its_node(kube: Kube) -> None:
    made = kube.make_pod("a")
    kube.bind("a", f"node-{kube.namespace}")
    params = {
        "resourceVersion": made["metadata"]["resourceVersion"],
        "fieldSelector": f"spec.nodeName=node-{kube.namespace}",
    }
    assert told(watched(kube, "/api/v1/pods", **params)) == [("ADDED", "a")]


@pytest.mark.slow
def test_a_bookmark_comes_before_the_watch_ends(kube: Kube) -> None:
    kube.needs_minor(21, "since 1.20 was seen to send none within ten seconds")
    made = kube.make_pod("a")
    version = made["metadata"]["resourceVersion"]
    asked = {"allowWatchBookmarks": "true", "resourceVersion": version}
    events = watched(kube, kube.pods, 4, **asked)
    bookmark = events[-1]
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["kind"] == "Pod"
    assert int(bookmark["object"]["metadata"]["resourceVersion"]) >= int(version)
    assert "name" not in bookmark["object"]["metadata"]


def test_a_watch_ends_after_its_timeout(kube: Kube) -> None:
    assert watched(kube, kube.leases) == []


def test_a_malformed_version_is_refused(kube: Kube) -> None:
    with pytest.raises(ApiError, match='Invalid value: "abc"'):
        watched(kube, kube.pods, resourceVersion="abc")


def test_a_version_before_the_history_is_gone(kube: Kube) -> None:
    kube.make_pod("a")
    kube.forget_history()
    # events are watched in etcd itself, other kinds in a cache that outlives a compaction
    (event,) = watched(kube, f"{kube.base}/events", resourceVersion="1")
    assert event["type"] == "ERROR"
    status = event["object"]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert "too old" in status["message"]
