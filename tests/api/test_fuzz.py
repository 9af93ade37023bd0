"""Nothing that the served schema allows ends in a 500."""

from __future__ import annotations

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, given, settings

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("mirror"), pytest.mark.slow]


def test_no_call_is_a_fault_of_ours(token: str) -> None:
    headers = {"Authorization": f"Bearer {token}", "Host": "localhost"}
    schema = schemathesis.openapi.from_wsgi("/api/schema/?format=json", get_wsgi_application())
    tried = set()
    for operation in schema.get_all_operations():
        calls = operation.ok().as_strategy()

        @given(case=calls)
        @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
        def answers(case) -> None:
            tried.add(case.operation.label)
            assert case.call(headers=headers).status_code in (200, 400, 404)

        answers()
    assert len(tried) >= 13
