"""How often each page asks the database: as often for many GPUs and much history as for few."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from hami_web.access.audit import SYSTEM
from hami_web.access.roles import Role
from hami_web.access.tokens import TokenGrant, create_token
from hami_web.dashboard.moments import written

from .addresses import page_paths
from .filled import fill_tables, filled_map
from .given import GivenMap
from .test_drawing import GPU

pytestmark = [pytest.mark.django_db]
FEW, MANY = 2, 12
"""Nodes, with two GPUs each; fewer rows than a page of a list holds."""
QUERIES: Final[dict[str, int]] = {
    "dashboard:page": 1, "dashboard:fragmentation": 2, "dashboard:what-if": 1,
    "dashboard:drain": 1, "dashboard:history": 6, "dashboard:alerts": 2, "dashboard:drift": 5,
    "dashboard:audit": 2, "dashboard:about": 1, "dashboard:document": 1, "dashboard:settings": 1,
    "dashboard:setup": 12, "dashboard:migration": 6, "dashboard:handover": 4,
    "dashboard:migration-converter": 1,
    "dashboard:migration-run": 5, "dashboard:namespaces": 3, "dashboard:namespace-page": 3,
    "dashboard:node-page": 2, "dashboard:gpu-page": 5, "dashboard:pod-page": 5, "access:login": 0,
    "table": 1, "answer": 1, "plan": 2, "Pod with reservation": 5, "one GPU": 1, "summary": 1,
    "past map": 6, "past GPU": 5, "past node": 5, "past Pod": 8,
}  # fmt: skip
"""Queries of each page, that of the caller's token included."""
MORE: Final = {
    "table": "/?view=table", "answer": "/what-if?wish=3g.20gb+x3",
    "plan": "/drain-plan?profile=3g.20gb&count=3", "Pod with reservation": "/pods/team/a0",
    "one GPU": f"/fragments/gpus/{GPU}", "summary": "/fragments/summary",
    "past map": "/history?at={then}", "past GPU": f"/gpus/{GPU}?at={{then}}",
    "past node": "/nodes/n1?at={then}", "past Pod": "/pods/team-0/gone0?at={then}",
}  # fmt: skip
"""What pages show when they are asked something, and fragments."""


def paths() -> dict[str, str]:
    """Every page and what is more, by name."""
    then = written(timezone.now() - timedelta(minutes=45))
    return {**page_paths(), **{name: path.replace("{then}", then) for name, path in MORE.items()}}


@pytest.fixture
def client() -> Client:
    token = create_token("tests", TokenGrant(Role.ADMIN), by=SYSTEM)
    return Client(headers={"host": "localhost", "authorization": f"Bearer {token}"})


@pytest.mark.parametrize("count", [FEW, MANY])
def test_a_page_asks_as_often_for_many_rows_as_for_few(
    client: Client, live: GivenMap, count: int
) -> None:
    live.show(filled_map(count))
    fill_tables(count)
    found = {}
    for name, path in paths().items():
        with CaptureQueriesContext(connection) as asked:
            assert client.get(path).status_code == 200, path
        found[name] = len(asked)
    assert found == QUERIES
