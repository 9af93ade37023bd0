"""A simulated API server with one node."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hami_web.core import annotations as keys
from hami_web.simulator.client import ApiClient, Endpoint
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig

from .processes import Redis
from .views import REGISTER


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiClient]:
    with SimulatedApiServer() as server:
        write_kubeconfig(tmp_path / "kubeconfig", server=server.url)
        client = ApiClient(Endpoint(server.url))
        meta = {"name": "n1", "annotations": {keys.NODE_REGISTER: REGISTER}}
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        client.create("/api/v1/nodes", {"metadata": meta, "status": ready})
        yield client
        client.close()


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed: apt-get install redis-server")
    redis = Redis()
    redis.start()
    yield redis
    redis.stop()
