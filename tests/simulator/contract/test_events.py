"""Events in both of their versions are the same objects."""

from __future__ import annotations

import pytest

from hami_web.simulator.client import ApiError
from hami_web.simulator.documents import JsonObject
from tests.simulator.contract.conftest import Kube


def new_event(kube: Kube, **changes: object) -> JsonObject:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": kube.namespace},
        "eventTime": "2026-11-30T12:00:00.000000Z",
        "reportingController": "hami.io/scheduler",
        "reportingInstance": "extender-0",
        "action": "Filter",
        "reason": "FilteringFailed",
        "type": "Warning",
        "note": "no GPU has room",
        "regarding": {"kind": "Pod", "namespace": kube.namespace, "name": "a"},
        **changes,
    }


def new_events(kube: Kube) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{kube.namespace}/events"


def test_an_event_of_the_new_group_is_seen_in_the_old(kube: Kube) -> None:
    kube.client.create(new_events(kube), new_event(kube))
    old = kube.client.get(f"{kube.base}/events/e")
    assert (old["apiVersion"], old["message"]) == ("v1", "no GPU has room")
    assert old["involvedObject"]["name"] == "a"
    assert old["reportingComponent"] == "hami.io/scheduler"


def test_an_event_of_the_old_group_is_seen_in_the_new(kube: Kube) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "namespace": kube.namespace, "name": "a"},
        "reason": "BindingFailed",
        "message": "text",
        "type": "Warning",
        "source": {"component": "hami"},
        "count": 2,
    }
    kube.client.create(f"{kube.base}/events", event)
    new = kube.client.get(f"{new_events(kube)}/e")
    assert (new["apiVersion"], new["note"]) == ("events.k8s.io/v1", "text")
    assert new["deprecatedSource"] == {"component": "hami"}
    assert new["deprecatedCount"] == 2


@pytest.mark.parametrize("field", ["action", "reportingController", "reportingInstance"])
def test_a_new_event_without_a_required_field_is_refused(kube: Kube, field: str) -> None:
    with pytest.raises(ApiError) as caught:
        kube.client.create(new_events(kube), new_event(kube, **{field: ""}))
    assert caught.value.code == 422


def test_a_note_of_more_than_1024_bytes_is_refused(kube: Kube) -> None:
    with pytest.raises(ApiError) as caught:
        kube.client.create(new_events(kube), new_event(kube, note="x" * 1025))
    assert caught.value.code == 422


def test_a_new_event_about_another_namespace_is_kept(kube: Kube) -> None:
    regarding = {"kind": "Pod", "namespace": "kube-system", "name": "a"}
    made = kube.client.create(new_events(kube), new_event(kube, regarding=regarding))
    assert made["regarding"] == regarding


def test_a_new_event_about_a_node_is_refused_outside_two_namespaces(kube: Kube) -> None:
    with pytest.raises(ApiError, match="does not match event") as caught:
        kube.client.create(
            new_events(kube), new_event(kube, regarding={"kind": "Node", "name": "n1"})
        )
    assert caught.value.code == 422


def test_an_old_event_about_another_namespace_is_refused(kube: Kube) -> None:
    event = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": "default"}}
    with pytest.raises(ApiError, match="does not match event") as caught:
        kube.client.create(f"{kube.base}/events", event)
    assert caught.value.code == 422


def test_an_event_series_is_patched(kube: Kube) -> None:
    kube.client.create(new_events(kube), new_event(kube))
    series = {"count": 3, "lastObservedTime": "2026-11-30T12:01:00.000000Z"}
    patched = kube.client.patch(f"{new_events(kube)}/e", {"series": series})
    assert patched["series"]["count"] == 3
