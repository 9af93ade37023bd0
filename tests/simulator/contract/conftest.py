"""The same tests on the simulated API server and on a real kube-apiserver.

The real one is started from the folder that HAMI_TEST_KUBE names (``up.sh``, ``down.sh``), or is
the cluster of the kubeconfig that HAMI_TEST_KUBECONFIG names.
"""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from hami_web.simulator.client import ApiClient, Endpoint
from hami_web.simulator.documents import JsonObject
from hami_web.simulator.server import SimulatedApiServer

ETCD = "http://127.0.0.1:23790"  # where up.sh lets it listen


@dataclass(frozen=True)
class Kube:
    """An API server and a namespace of this test's own."""

    client: ApiClient
    namespace: str
    server: SimulatedApiServer | None = None

    def needs_minor(self, minor: int, why: str) -> None:
        """Skip on releases before Kubernetes 1.``minor``."""
        found = self.client.get("/version")["gitVersion"]
        if int(found.split(".")[1]) < minor:
            pytest.skip(f"this is Kubernetes {found}, the test needs 1.{minor}, {why}")

    def forget_history(self) -> None:
        """Compact, as a server does every five minutes."""
        if self.server is not None:
            self.server.compact()
        elif os.environ.get("HAMI_TEST_KUBE"):
            version = self.client.get(self.pods)["metadata"]["resourceVersion"]
            etcd = ApiClient(Endpoint(ETCD))
            etcd.request("POST", "/v3/kv/compaction", {"revision": version, "physical": True})
            etcd.close()
        else:
            pytest.skip("history can only be forgotten where etcd is at hand")

    @property
    def base(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}"

    @property
    def pods(self) -> str:
        return f"{self.base}/pods"

    @property
    def config_maps(self) -> str:
        return f"{self.base}/configmaps"

    @property
    def leases(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"

    @property
    def budgets(self) -> str:
        return f"/apis/policy/v1beta1/namespaces/{self.namespace}/poddisruptionbudgets"

    def make_pod(self, name: str, **metadata: object) -> JsonObject:
        return self.client.create(self.pods, pod(name, **metadata))

    def bind(self, name: str, node: str = "n1", **metadata: object) -> JsonObject:
        return self.client.create(f"{self.pods}/{name}/binding", binding(name, node, **metadata))


def pod(name: str, **metadata: object) -> JsonObject:
    container = {"name": "main", "image": "lab.local/pause:1", "imagePullPolicy": "Never"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        # a scheduler that no cluster runs, so that nothing else touches the Pod
        "spec": {"schedulerName": "contract", "containers": [container]},
    }


def binding(name: str, node: str = "n1", **metadata: object) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **metadata},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


def config_map(name: str, **data: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Real runs first: one machine holds one cluster, and later suites keep theirs to the end."""
    items.sort(key=lambda item: not _is_real(item))


def _is_real(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    return callspec is not None and callspec.params.get("backend") == "real"


@pytest.fixture(scope="package")
def real_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A cluster of the suite's own only: it writes Nodes and compacts the store."""
    folder = os.environ.get("HAMI_TEST_KUBE")
    if not folder:
        pytest.skip("HAMI_TEST_KUBE names no real Kubernetes that may be started")
    run = tmp_path_factory.mktemp("kube")
    up = [f"{folder}/up.sh", "--control-plane-only", "--dir", str(run)]
    try:
        started = subprocess.run(up, check=True, stdout=subprocess.PIPE, text=True)
        yield endpoint_of(Path(started.stdout.strip()))
    finally:
        subprocess.run([f"{folder}/down.sh", str(run)], check=True)


def endpoint_of(kubeconfig: Path) -> Endpoint:
    config = yaml.safe_load(kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    token = config["users"][0]["user"]["token"]
    authority = cluster.get("certificate-authority")
    return Endpoint(cluster["server"], token, Path(authority) if authority else None)


@pytest.fixture(
    params=[
        "simulated",
        pytest.param(
            "real",
            marks=[
                pytest.mark.cluster,
                pytest.mark.timeout(120),
            ],
        ),
    ]
)
def backend(request: pytest.FixtureRequest) -> Iterator[tuple[Endpoint, SimulatedApiServer | None]]:
    if request.param == "real":
        yield request.getfixturevalue("real_endpoint"), None
        return
    with SimulatedApiServer() as server:
        yield Endpoint(server.url), server


@pytest.fixture
def kube(backend: tuple[Endpoint, SimulatedApiServer | None]) -> Iterator[Kube]:
    endpoint, server = backend
    client = ApiClient(endpoint)
    name = f"contract-{uuid.uuid4().hex[:8]}"
    client.create("/api/v1/namespaces", {"metadata": {"name": name}})
    yield Kube(client, name, server)
    client.request("DELETE", f"/api/v1/namespaces/{name}/pods", params={"gracePeriodSeconds": "0"})
    client.delete(f"/api/v1/namespaces/{name}")
    client.close()
