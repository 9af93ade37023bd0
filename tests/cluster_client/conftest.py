"""A simulated API server, and our client on it."""

from __future__ import annotations

import pytest

from hami_web.cluster.client import KubernetesClient, OfficialConnection
from hami_web.cluster.transport import Request, Transport
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig


@pytest.fixture
def server():
    with SimulatedApiServer() as running:
        yield running


@pytest.fixture
def transport(server, tmp_path):
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", server=server.url)
    connection = OfficialConnection(kubeconfig)
    yield Transport(connection, user_agent="hami-web-test")
    connection.close()


@pytest.fixture
def client(transport):
    return KubernetesClient(transport)


@pytest.fixture
def make_node(transport):
    def make(name, annotations=None):
        metadata = {"name": name, "annotations": annotations or {}}
        body = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
        transport.send(Request("POST", "/api/v1/nodes", body=body))

    return make


@pytest.fixture
def make_pod(transport):
    def make(name):
        spec = {"containers": [{"name": "main", "image": "x"}]}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        transport.send(Request("POST", "/api/v1/namespaces/default/pods", body=body))

    return make
