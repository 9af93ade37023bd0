"""A simulated API server and a client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hami_web.simulator.client import ApiClient, Endpoint
from hami_web.simulator.server import SimulatedApiServer


@pytest.fixture
def server() -> Iterator[SimulatedApiServer]:
    with SimulatedApiServer() as running:
        yield running


@pytest.fixture
def client(server: SimulatedApiServer) -> Iterator[ApiClient]:
    api = ApiClient(Endpoint(server.url))
    yield api
    api.close()
