"""What the server answers beside the objects: health, version, discovery."""

from __future__ import annotations

import urllib.request

import pytest

from hami_web.simulator.client import ApiClient, ApiError
from hami_web.simulator.server import SimulatedApiServer
from tests.simulator.contract.conftest import config_map, pod


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_the_server_is_healthy(server: SimulatedApiServer, path: str) -> None:
    with urllib.request.urlopen(server.url + path) as answer:
        assert (answer.status, answer.read()) == (200, b"ok")


def test_discovery_names_what_is_served(client: ApiClient) -> None:
    core = {entry["name"] for entry in client.get("/api/v1")["resources"]}
    assert {"pods", "pods/binding", "pods/eviction", "nodes", "nodes/status"} <= core
    groups = {group["name"] for group in client.get("/apis")["groups"]}
    assert {"policy", "coordination.k8s.io", "events.k8s.io"} <= groups
    with pytest.raises(ApiError, match="could not find"):
        client.get("/apis/policy/v9")


def test_a_namespace_takes_its_objects_with_it(client: ApiClient) -> None:
    client.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    client.create("/api/v1/namespaces/team/pods", pod("a"))
    client.create("/api/v1/namespaces/team/configmaps", config_map("a"))
    client.delete("/api/v1/namespaces/team")
    assert client.get("/api/v1/pods")["items"] == []
    with pytest.raises(ApiError, match='namespaces "team" not found'):
        client.create("/api/v1/namespaces/team/pods", pod("a"))


def test_a_dry_run_is_refused_instead_of_done(client: ApiClient) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    with pytest.raises(ApiError, match="dryRun is not simulated"):
        client.request("POST", path, config_map("a"), params={"dryRun": "All"})
    assert client.get(path)["items"] == []


def test_a_server_that_never_started_stops() -> None:
    SimulatedApiServer().stop()
