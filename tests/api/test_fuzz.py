"""Whatever is sent to the served schema's operations is answered as the schema says, never by 500.

With authentication on, by an admin, and by a viewer who sees one namespace.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
)

from hami_web.access.audit import SYSTEM
from hami_web.access.roles import Role
from hami_web.access.tokens import TokenGrant, create_token
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig
from hami_web.verbs import cluster

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("mirror", "api_server"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
]
CHECKS = [content_type_conformance, response_schema_conformance]
GRANTS = {
    "admin": TokenGrant(Role.ADMIN),
    "viewer": TokenGrant(Role.VIEWER, namespaces=frozenset({"other"})),
}
MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]


@pytest.fixture(autouse=True)
def one_connection() -> Iterator[None]:
    """The test's transaction is on this connection, which a real request would give back."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.fixture
def api_server(settings, tmp_path) -> Iterator[None]:
    settings.API_CALLS_PER_MINUTE = 1_000_000
    with SimulatedApiServer() as server:
        settings.KUBECONFIG = write_kubeconfig(tmp_path / "kubeconfig", server=server.url)
        yield
        cluster._client.cache_clear()


@pytest.mark.parametrize("grant", sorted(GRANTS))
@pytest.mark.parametrize("mode", MODES, ids=["as allowed", "as not allowed"])
def test_every_call_is_answered_as_the_schema_says(grant: str, mode: GenerationMode) -> None:
    token = create_token("fuzz", GRANTS[grant], by=SYSTEM)
    headers = {
        "Authorization": f"Bearer {token}",
        "Host": "localhost",
        "Accept-Encoding": "identity",
    }
    schema = schemathesis.openapi.from_wsgi("/api/schema/?format=json", get_wsgi_application())
    tried = set()
    for operation in schema.get_all_operations():
        calls = operation.ok().as_strategy(generation_mode=mode)

        @given(case=calls)
        @examples(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
        def answers(case) -> None:
            tried.add(case.operation.label)
            response = case.call(headers=headers)
            assert response.status_code < 500
            documented = case.operation.definition.raw["responses"]
            assert str(response.status_code) in documented
            case.validate_response(response, checks=CHECKS)

        answers()
    assert len(tried) >= 20
