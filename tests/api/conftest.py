"""A small mirror, and clients with and without a token."""

from __future__ import annotations

import pytest
from django.test import Client

from hami_web.access import visibility
from hami_web.access.audit import SYSTEM
from hami_web.access.roles import Role
from hami_web.access.tokens import TokenGrant, create_token
from hami_web.core.blocked import BlockedInterval
from hami_web.core.placement import Placement
from hami_web.inventory.mirror import mirror_nodes
from hami_web.reservations.mirror import mirror_pods, release_pods
from tests.mirror.observations import GPUS, IDENTITY, gpu, moment, node, placed, pod


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    """Which namespaces a table has is remembered for seconds, longer than a test takes."""
    visibility._names.clear()


@pytest.fixture
def anonymous() -> Client:
    return Client(headers={"host": "localhost"})


@pytest.fixture
def token(db) -> str:
    return create_token("tests", TokenGrant(Role.ADMIN), by=SYSTEM)


@pytest.fixture
def client(token: str) -> Client:
    return Client(headers={"host": "localhost", "authorization": f"Bearer {token}"})


@pytest.fixture
def mirror(db) -> None:
    """Two nodes with two GPUs each; three reservations, one of them over."""
    blocked = (BlockedInterval(GPUS[0], Placement(4, 2), "foreign <instance>"),)
    nodes = [
        node("n1", (gpu(GPUS[0], blocked=blocked), gpu(GPUS[1], index=1))),
        node("n2", (gpu(GPUS[2]), gpu(GPUS[3], index=1, healthy=False))),
    ]
    mirror_nodes(nodes, seen_at=moment(0), now=moment(0))
    pods = [
        pod("a", placed(0, identity=IDENTITY)),
        pod("b", placed(2, 2)),
        pod("c", placed(0, 8, GPUS[2]), namespace="other", node="n2"),
    ]
    mirror_pods(pods, seen_at=moment(10), now=moment(10))
    release_pods(["c"], seen_at=moment(3610), now=moment(3610))
