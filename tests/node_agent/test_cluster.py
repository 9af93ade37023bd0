"""The Kubernetes adapter: complete lists or none, strict answers, bounded waiting."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_web.core.errors import InvalidField
from hami_web.simulator.faults import RequestMatch
from node_agent import cluster as adapter
from node_agent import decoding
from node_agent.cluster import Cluster, connect
from node_agent.config import AgentConfig
from node_agent.errors import ClusterConflict, ClusterError, ClusterMalformed, ClusterNotFound
from node_agent.pods import ContainerState, ObservedPod
from tests.node_agent.lab import NODE, Lab, wait_until

PODS_LIST = RequestMatch(verb="list", resource="pods")


@pytest.fixture
def cluster(lab: Lab) -> Iterator[Cluster]:
    config = AgentConfig.from_env(lab.environment)
    made = connect(config.node_name, config.kubeconfig, 1.0)
    yield made
    made.close()


def bound_pods(lab: Lab, count: int) -> None:
    for number in range(count):
        lab.create_pod(f"pod-{number}")
        lab.bind(f"pod-{number}", {})
    lab.create_pod("elsewhere")


def test_a_list_has_every_page_and_only_this_node(
    lab: Lab, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "_PAGE", 2)
    bound_pods(lab, 5)
    assert sorted(pod.name for pod in cluster.pods().pods) == [f"pod-{n}" for n in range(5)]


def test_a_list_whose_later_page_fails_is_no_list(
    lab: Lab, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "_PAGE", 2)
    bound_pods(lab, 5)
    ask = cluster._json

    def failing(method: str, path: str, query: Any = None, body: Any = None) -> object:
        if query and "continue" in query:
            lab.server.faults.answer(410, PODS_LIST)
        return ask(method, path, query, body)

    monkeypatch.setattr(cluster, "_json", failing)
    with pytest.raises(ClusterError) as caught:
        cluster.pods()
    assert caught.value.status == 410


@pytest.mark.parametrize("kind", ["truncate", "lose-answer"])
def test_half_an_answer_is_no_answer(lab: Lab, cluster: Cluster, kind: str) -> None:
    bound_pods(lab, 1)
    lab.server.faults.order(kind, PODS_LIST, times=3)
    with pytest.raises(ClusterError) as caught:
        cluster.pods()
    assert caught.value.status == 0


def test_waiting_is_bounded(lab: Lab, cluster: Cluster) -> None:
    lab.server.faults.delay(3.0, PODS_LIST, times=None)
    start = time.monotonic()
    with pytest.raises(ClusterError):
        cluster.pods()
    assert time.monotonic() - start < 2.9


def test_a_pod_that_does_not_exist_is_none_and_a_node_is_an_error(
    lab: Lab, cluster: Cluster
) -> None:
    assert cluster.pod("default", "nobody") is None
    lab.client.delete(f"/api/v1/nodes/{NODE}")
    with pytest.raises(ClusterNotFound):
        cluster.node()


def test_a_patch_of_a_changed_pod_is_a_conflict(lab: Lab, cluster: Cluster) -> None:
    lab.create_pod("job")
    before = cluster.pod("default", "job")
    assert before is not None
    lab.annotate("job", {"a": "1"})
    with pytest.raises(ClusterConflict):
        cluster.patch_pod(before, {"b": "2"})
    assert lab.annotations("job") == {"a": "1"}


def test_a_watch_brings_changes_and_ends_from_another_thread(lab: Lab, cluster: Cluster) -> None:
    stream = cluster.watch_pods(cluster.pods().resource_version)
    seen: list[str] = []

    def follow() -> None:
        with suppress(ClusterError):
            seen.extend(decoding.pod_event(line).kind for line in stream.lines())

    thread = threading.Thread(target=follow)
    thread.start()
    bound_pods(lab, 1)
    lab.delete("pod-0")
    time.sleep(0.1)
    stream.end()
    thread.join(5)
    assert not thread.is_alive()
    assert seen[-1] == "DELETED"


def test_a_broken_watch_is_opened_again(lab: Lab) -> None:
    with lab.agent(HAMI_RECLAIM_SECONDS="600"):
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
        lab.server.close_connections()
        lab.delete("job")
        wait_until(lambda: lab.placements() == [], "reclaimed", 3.0)


def test_an_expired_watch_is_opened_again(lab: Lab) -> None:
    with lab.agent(HAMI_RECLAIM_SECONDS="600"):
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
        lab.server.compact()
        lab.server.close_connections()
        lab.delete("job")
        wait_until(lambda: lab.placements() == [], "reclaimed", 3.0)


POD = {
    "metadata": {"namespace": "ns", "name": "n", "uid": "u", "resourceVersion": "7"},
    "spec": {
        "nodeName": "n1",
        "initContainers": [{"name": "i"}],
        "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "2"}}}],
    },
    "status": {
        "phase": "Running",
        "containerStatuses": [{"name": "c", "state": {"running": {}}}],
        "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 0}}}],
    },
}


def test_a_pod_is_decoded_into_what_the_agent_decides_on() -> None:
    assert decoding.pod(POD) == ObservedPod(
        namespace="ns",
        name="n",
        uid="u",
        resource_version="7",
        node="n1",
        phase="Running",
        deleting=False,
        annotations={},
        labels={},
        containers=("i", "c"),
        app_containers=("c",),
        limits=({}, {"nvidia.com/gpu": "2"}),
        states={"c": ContainerState.RUNNING, "i": ContainerState.TERMINATED},
    )


@pytest.mark.parametrize("missing", ["namespace", "name", "uid", "resourceVersion"])
def test_a_pod_without_an_identity_makes_its_page_unusable(missing: str) -> None:
    metadata = {key: value for key, value in POD["metadata"].items() if key != missing}
    page = {"metadata": {"resourceVersion": "1"}, "items": [POD, POD | {"metadata": metadata}]}
    with pytest.raises(InvalidField) as caught:
        decoding.pod_page(page)
    assert missing in str(caught.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(
    st.sampled_from((decoding.pod, decoding.node, decoding.pod_page)),
    json_values,
    st.sampled_from(("metadata", "spec", "status", "items")),
    json_values,
)
def test_decoding_anything_returns_or_refuses(
    decode: Any, document: object, key: str, part: object
) -> None:
    for candidate in (document, POD | {key: part}, POD | {"items": [POD | {key: part}]}):
        with suppress(InvalidField):
            assert decode(candidate) is not None


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"type":"ADDED"}', b'{"type":1}', b"\xff"])
def test_an_unreadable_event_is_refused(line: bytes) -> None:
    with pytest.raises(InvalidField):
        decoding.pod_event(line)


def test_an_error_event_carries_no_pod() -> None:
    event = decoding.pod_event(json.dumps({"type": "ERROR", "object": {"code": 410}}).encode())
    assert (event.kind, event.pod) == ("ERROR", None)


def test_an_answer_without_its_fields_is_refused_whole(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_json", lambda *_a, **_k: {"metadata": {}, "items": [{}]})
    with pytest.raises(ClusterMalformed):
        cluster.pods()
