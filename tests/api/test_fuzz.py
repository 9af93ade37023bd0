"""Nothing that the served schema allows ends in a 500."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, given
from hypothesis import settings as examples

from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig
from hami_web.verbs import cluster

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("mirror"),
    pytest.mark.slow,
    pytest.mark.timeout(400),
]


@pytest.fixture
def api_server(settings, tmp_path) -> Iterator[None]:
    with SimulatedApiServer() as server:
        settings.KUBECONFIG = write_kubeconfig(tmp_path / "kubeconfig", server=server.url)
        yield
        cluster._client.cache_clear()


def test_no_call_is_a_fault_of_ours(token: str, api_server: None) -> None:
    headers = {"Authorization": f"Bearer {token}", "Host": "localhost"}
    schema = schemathesis.openapi.from_wsgi("/api/schema/?format=json", get_wsgi_application())
    tried = set()
    for operation in schema.get_all_operations():
        calls = operation.ok().as_strategy()

        @given(case=calls)
        @examples(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
        def answers(case) -> None:
            tried.add(case.operation.label)
            assert case.call(headers=headers).status_code in (200, 400, 404, 409, 412)

        answers()
    assert len(tried) >= 13
