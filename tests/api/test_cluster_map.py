"""The map of the whole cluster."""

from __future__ import annotations

import pytest
from django.test import Client

from hami_web.access.audit import SYSTEM
from hami_web.access.roles import Role
from hami_web.access.tokens import TokenGrant, create_token
from tests.mirror.observations import GPUS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("mirror")]


@pytest.fixture
def outsider(db) -> Client:
    """Sees a namespace in which nothing is."""
    grant = TokenGrant(Role.VIEWER, namespaces=["elsewhere"])
    token = create_token("outsider", grant, by=SYSTEM)
    return Client(headers={"host": "localhost", "authorization": f"Bearer {token}"})


def gpus(client: Client) -> dict[str, dict]:
    answer = client.get("/api/v1/map")
    assert answer.status_code == 200, answer.content
    return {gpu["uuid"]: gpu for node in answer.json()["nodes"] for gpu in node["gpus"]}


def test_nodes_have_their_gpus_in_order(client: Client) -> None:
    nodes = client.get("/api/v1/map").json()["nodes"]
    assert [(node["name"], [gpu["uuid"] for gpu in node["gpus"]]) for node in nodes] == [
        ("n1", list(GPUS[:2])),
        ("n2", list(GPUS[2:])),
    ]


@pytest.mark.parametrize("uuid", GPUS)
def test_each_gpu_is_as_its_own_map_shows_it(client: Client, outsider: Client, uuid: str) -> None:
    for caller in (client, outsider):
        alone = caller.get(f"/api/v1/gpus/{uuid}/map").json()
        assert gpus(caller)[uuid]["intervals"] == alone["intervals"]


def test_what_may_not_be_seen_has_no_name(outsider: Client) -> None:
    text = outsider.get("/api/v1/map").content.decode()
    assert "team" not in text
    assert "foreign" not in text
    states = {item["state"] for gpu in gpus(outsider).values() for item in gpu["intervals"]}
    assert states == {"unavailable", "blocked", "free"}


def test_a_map_takes_five_queries(client: Client, django_assert_num_queries) -> None:
    with django_assert_num_queries(5):  # token, reservations, blocked intervals, nodes, GPUs
        client.get("/api/v1/map")


def test_a_map_has_no_parameters(client: Client) -> None:
    assert client.get("/api/v1/map?node=n1").status_code == 400
