"""The official Kubernetes client works on the simulated API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import kubernetes
import pytest
from kubernetes.client.exceptions import ApiException

from hami_web.simulator.identity import Identities, User
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig


@pytest.fixture
def core(tmp_path: Path) -> Iterator[kubernetes.client.CoreV1Api]:
    identities = Identities(tokens={"secret": User("hami-control-plane")})
    with SimulatedApiServer(identities=identities) as server:
        path = write_kubeconfig(tmp_path / "config", server=server.url, token="secret")
        api_client = kubernetes.config.new_client_from_config(str(path))
        yield kubernetes.client.CoreV1Api(api_client)
        api_client.rest_client.pool_manager.clear()


def make_pod(core: kubernetes.client.CoreV1Api, name: str) -> kubernetes.client.V1Pod:
    container = kubernetes.client.V1Container(name="main", image="pause:1")
    return core.create_namespaced_pod(
        "default",
        kubernetes.client.V1Pod(
            metadata=kubernetes.client.V1ObjectMeta(name=name),
            spec=kubernetes.client.V1PodSpec(containers=[container]),
        ),
    )


def test_pods_are_created_listed_bound_and_deleted(core: kubernetes.client.CoreV1Api) -> None:
    pod = make_pod(core, "one")
    assert pod.metadata.uid
    assert [p.metadata.name for p in core.list_pod_for_all_namespaces().items] == ["one"]
    binding = kubernetes.client.V1Binding(
        metadata=kubernetes.client.V1ObjectMeta(name="one", annotations={"a": "b"}),
        target=kubernetes.client.V1ObjectReference(kind="Node", name="n1"),
    )
    core.create_namespaced_pod_binding("one", "default", binding, _preload_content=False)
    bound = core.read_namespaced_pod("one", "default")
    assert (bound.spec.node_name, bound.metadata.annotations) == ("n1", {"a": "b"})
    core.delete_namespaced_pod("one", "default", grace_period_seconds=0)
    with pytest.raises(ApiException, match="404"):
        core.read_namespaced_pod("one", "default")


def test_a_watch_delivers_events(core: kubernetes.client.CoreV1Api) -> None:
    make_pod(core, "one")
    watch = kubernetes.watch.Watch()
    events = watch.stream(core.list_namespaced_pod, "default", timeout_seconds=1)
    assert [(event["type"], event["object"].metadata.name) for event in events] == [
        ("ADDED", "one")
    ]


def test_an_unknown_token_is_refused(tmp_path: Path) -> None:
    with SimulatedApiServer(identities=Identities(tokens={"a": User("a")})) as server:
        path = write_kubeconfig(tmp_path / "config", server=server.url, token="b")
        api_client = kubernetes.config.new_client_from_config(str(path))
        with pytest.raises(ApiException, match="401"):
            kubernetes.client.CoreV1Api(api_client).list_node()
        api_client.rest_client.pool_manager.clear()
