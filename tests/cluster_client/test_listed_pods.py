"""What lists leave out of bound Pods is what nobody reads of them."""

from __future__ import annotations

import msgspec
import pytest

from hami_web.cluster.errors import MalformedAnswer
from hami_web.cluster.listed_pods import ListedPod
from hami_web.cluster.ports import Binding
from hami_web.cluster.resources import pods
from hami_web.cluster.views import PodView
from hami_web.scheduling.pods import read_pod
from tests.builders import reservation
from tests.scheduling.state.cluster import pod


def listed(view: PodView) -> PodView:
    return msgspec.json.decode(msgspec.json.encode(view), type=ListedPod).view()


def test_a_bound_pod_occupies_the_same_without_its_containers() -> None:
    whole = pod("a", on="node-1", reservations=[reservation()])
    found = listed(whole)
    assert read_pod(found) == read_pod(whole) is not None
    assert whole.container_specs() != found.container_specs() == []


def test_a_waiting_pod_stays_whole() -> None:
    whole = pod("b", 4000, annotations={"x": "y"})
    assert listed(whole) == whole


def test_null_for_containers_is_none() -> None:
    text = b'{"metadata":{"name":"a"},"spec":{"containers":null}}'
    assert msgspec.json.decode(text, type=ListedPod).view().container_specs() == []


def test_lists_and_reads_of_single_pods_differ_in_containers_alone(
    transport, client, make_pod, make_node
) -> None:
    make_node("n1")
    for name in ("bound", "waiting"):
        make_pod(name)
    uid = client.get_pod("default", "bound").uid
    client.bind(Binding("default", "bound", uid, "n1", {"hami.io/vgpu-node": "n1"}))
    bound, waiting = pods(transport).list_page(limit=10, more="").items
    assert waiting == client.get_pod("default", "waiting")
    single = client.get_pod("default", "bound")
    single.spec.containers = None
    assert bound == single


def test_containers_of_another_shape_are_no_list(transport) -> None:
    class Broken:
        def send(self, _request):
            return b'{"metadata":{},"items":[{"metadata":{},"spec":{"containers":5}}]}'

    with pytest.raises(MalformedAnswer, match="array"):
        pods(Broken()).list_page(limit=10, more="")
