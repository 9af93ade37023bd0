"""Drain plans over HTTP."""

from __future__ import annotations

import subprocess

import pytest
from django.test import Client

from hami_web.access.audit import SYSTEM
from hami_web.access.roles import Role
from hami_web.access.tokens import TokenGrant, create_token
from tests.mirror.observations import GPUS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("mirror")]
URL = "/api/v1/drain-plan"


def plan(client: Client, **query: object) -> dict:
    answer = client.get(URL, query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_plan_names_the_pod_its_new_place_and_the_maps(client: Client) -> None:
    found = plan(client, profile="2g.10gb", count=7)
    assert (found["possible"], found["exact"], found["free"]) == (True, True, 6)
    (move,) = found["moves"]
    assert (move["namespace"], move["pod"], move["node"]) == ("team", "a", "n1")
    assert move["reservations"] == [
        {"gpu_uuid": GPUS[0], "profile": "1g.5gb", "start": 0, "size": 1}
    ]
    assert len(found["placements"]) == 7
    (change,) = [item for item in found["gpus"] if item["gpu_uuid"] == GPUS[0]]
    assert [item["pod"] for item in change["before"]] == ["a", "b"]
    assert "wanted" in [item["state"] for item in change["after"]]


def test_commands_cordon_first_evict_wait_and_offer_again(client: Client) -> None:
    commands = plan(client, profile="2g.10gb", count=7)["commands"]
    words = [line.split()[1] if line.startswith("kubectl") else line[:4] for line in commands]
    assert words == ["# ke", "annotate", "annotate", "# mo", "echo", "-n", "# of"] + 2 * [
        "annotate"
    ]
    assert commands[-1] == "kubectl annotate node n2 --overwrite hami.io/device-cordon-"
    checked = subprocess.run(["bash", "-n"], input="\n".join(commands), text=True, check=False)
    assert checked.returncode == 0


def test_what_is_free_needs_no_move_and_too_much_has_no_plan(client: Client) -> None:
    free = plan(client, profile="7g.40gb", count=2)
    assert (free["possible"], free["moves"], free["commands"]) == (True, [], [])
    none = plan(client, profile="7g.40gb", count=4)
    assert (none["possible"], none["placements"]) == (False, [])


def test_pods_of_other_namespaces_have_no_names(client: Client) -> None:
    grant = TokenGrant(Role.VIEWER, namespaces=frozenset({"other"}))
    token = create_token("other", grant, by=SYSTEM)
    stranger = Client(headers={"host": "localhost", "authorization": f"Bearer {token}"})
    found = plan(stranger, profile="2g.10gb", count=7)
    (move,) = found["moves"]
    assert (move["namespace"], move["pod"], move["priority"]) == ("unavailable",) * 2 + (None,)
    assert "team" not in str(found)
    asked = stranger.post(
        "/api/v1/what-if",
        {"memory_mib": 20000, "use_uuids": [GPUS[0]]},
        content_type="application/json",
    )
    blockers = asked.json()["obstacle"]["blockers"]
    assert {row["pod"] for row in blockers["reservations"]} == {"unavailable"}


@pytest.mark.parametrize(
    ("query", "field", "allowed"),
    [
        ({}, "profile", "1g.5gb, 2g.10gb"),
        ({"profile": "9g.90gb"}, "profile", "7g.40gb"),
        ({"profile": "1g.5gb", "count": "0"}, "count", "1…100"),
        ({"profile": "1g.5gb", "max_priority": "-1"}, "max_priority", "0…1000000000"),
        ({"profile": "1g.5gb", "execute": "true"}, "execute", "profile, count"),
    ],
)
def test_a_parameter_without_sense_is_400(client: Client, query, field, allowed) -> None:
    answer = client.get(URL, query)
    assert answer.status_code == 400
    (entry,) = answer.json()["errors"]
    assert entry["field"] == field
    assert allowed in entry["allowed"]


def test_a_plan_takes_a_fixed_number_of_queries(client: Client, django_assert_num_queries) -> None:
    with django_assert_num_queries(8):  # token, feed, five for the cluster, who must stay
        plan(client, profile="2g.10gb", count=7)
