"""The cluster as it was at an instant, and what changed between two."""

from __future__ import annotations

import csv
import io

import pytest
from django.test import Client

from hami_web.access.audit import SYSTEM
from hami_web.access.roles import Role
from hami_web.access.tokens import TokenGrant, create_token
from hami_web.core.blocked import BlockedInterval
from hami_web.core.placement import Placement
from hami_web.inventory.mirror import forget_nodes, mirror_nodes
from hami_web.reservations.mirror import mirror_pods, release_pods
from tests.mirror.observations import GPUS, IDENTITY, gpu, moment, node, placed, pod

pytestmark = pytest.mark.django_db
BLOCKED = (BlockedInterval(GPUS[0], Placement(4, 2), "foreign instance"),)


def see_nodes(seconds: float, *nodes) -> None:
    mirror_nodes(nodes, seen_at=moment(seconds), now=moment(seconds), complete=True)


def see(seconds: float, *pods) -> None:
    mirror_pods(pods, seen_at=moment(seconds), now=moment(seconds))


@pytest.fixture(autouse=True)
def _story(db) -> None:
    """A GPU that is cordoned at 20, blocked from 30 to 40 and gone at 90, with two Pods."""
    see_nodes(10, node("n1"))
    see(11, pod("a", placed(0)))
    see(12, pod("a", placed(0, identity=IDENTITY)))
    see_nodes(20, node("n1", (gpu(cordoned=True),)))
    see_nodes(30, node("n1", (gpu(cordoned=True, blocked=BLOCKED),), unschedulable=True))
    see_nodes(40, node("n1", (gpu(cordoned=True),), unschedulable=True))
    see(50, pod("a", placed(0, identity=IDENTITY), deleting=True))
    see(51, pod("b", placed(2, 2), namespace="other"))
    release_pods(["a"], seen_at=moment(60), now=moment(60))
    forget_nodes(["n1"], seen_at=moment(90), now=moment(90))


def at(seconds: int) -> str:
    return f"2026-01-01T00:{seconds // 60:02}:{seconds % 60:02}Z"


def results(client: Client, path: str, **query: str) -> list[dict]:
    answer = client.get(f"/api/v1/{path}", query)
    assert answer.status_code == 200, answer.content
    return answer.json()["results"]


@pytest.mark.parametrize(
    ("second", "nodes", "gpus"),
    [
        (9, [], []),
        (10, [("n1", False)], [(GPUS[0], "n1", False, 0)]),
        (25, [("n1", False)], [(GPUS[0], "n1", True, 0)]),
        (35, [("n1", True)], [(GPUS[0], "n1", True, 1)]),
        (40, [("n1", True)], [(GPUS[0], "n1", True, 0)]),
        (90, [], []),
    ],
)
def test_nodes_and_gpus_are_as_they_were(client: Client, second, nodes, gpus) -> None:
    found = results(client, "nodes", at=at(second))
    assert [(row["name"], row["unschedulable"]) for row in found] == nodes
    found = results(client, "gpus", at=at(second))
    assert [
        (row["uuid"], row["node"], row["cordoned"], len(row["blocked"])) for row in found
    ] == gpus


def test_filters_order_and_fields_hold_for_the_past_too(client: Client) -> None:
    query = {"at": at(35), "node": "n1", "cordoned": "true", "ordering": "-uuid"}
    [row] = results(client, "gpus", fields="uuid,profiles", **query)
    assert row == {"uuid": GPUS[0], "profiles": ["1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb"]}
    assert results(client, "gpus", at=at(35), cordoned="false") == []


@pytest.mark.parametrize(
    ("second", "phases"),
    [
        (10, {}),
        (11, {"a": "reserved"}),
        (12, {"a": "realized"}),
        (55, {"a": "terminating", "b": "reserved"}),
        (60, {"b": "reserved"}),
    ],
)
def test_reservations_are_in_the_phase_of_then(client: Client, second, phases) -> None:
    found = {row["pod"]: row["phase"] for row in results(client, "reservations", at=at(second))}
    assert found == phases
    for phase in set(phases.values()):
        seen = results(client, "reservations", at=at(second), phase=phase)
        assert {row["pod"] for row in seen} == {p for p, q in phases.items() if q == phase}


def test_the_map_and_its_drawing_are_of_then(client: Client) -> None:
    path = f"/api/v1/gpus/{GPUS[0]}/map"
    found = client.get(path, {"at": at(35)}).json()["intervals"]
    states = [(item["start"], item["size"], item["state"]) for item in found]
    assert states[0] == (0, 1, "realized")
    assert (4, 2, "blocked") in states
    assert b"blocked 4:2" in client.get(f"{path}.svg", {"at": at(35)}).content
    assert client.get(path, {"at": at(9)}).status_code == 404
    assert client.get(path).status_code == 404
    assert client.get(path, {"at": "then"}).status_code == 400


def test_changes_between_two_instants_are_every_step_in_order(client: Client) -> None:
    found = results(client, "changes", **{"from": at(0), "to": at(120)})
    told = [(row["entity"], row["change"], row["pod"] or row["detail"]) for row in found]
    assert told == [
        ("gpu", "appeared", ""),
        ("node", "appeared", ""),
        ("reservation", "reserved", "a"),
        ("reservation", "realized", "a"),
        ("gpu", "changed", "cordoned=true"),
        ("blocked", "appeared", ""),
        ("node", "changed", "unschedulable=true"),
        ("blocked", "gone", ""),
        ("reservation", "terminating", "a"),
        ("reservation", "reserved", "b"),
        ("reservation", "released", "a"),
        ("gpu", "gone", ""),
        ("node", "gone", ""),
    ]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"from": at(11), "to": at(12)}, 1),
        ({"entity": "blocked"}, 2),
        ({"namespace": "other"}, 1),
        ({"gpu_uuid": GPUS[0]}, 10),
        ({"node": "n1"}, 13),
        ({"node": "n2"}, 0),
        ({"entity": "node", "namespace": "team"}, 0),
        ({"limit": "3", "offset": "12"}, 1),
    ],
)
def test_changes_are_filtered_and_paged(client: Client, query, count) -> None:
    every = {"from": at(0), "to": at(120)}
    assert len(results(client, "changes", **(every | query))) == count


def test_changes_are_also_csv_and_name_the_next_page(client: Client) -> None:
    query = {"from": at(0), "to": at(120), "limit": "5"}
    assert "offset=5" in client.get("/api/v1/changes", query).json()["next"]
    answer = client.get("/api/v1/changes", query | {"format": "csv"})
    assert len(list(csv.DictReader(io.StringIO(answer.content.decode())))) == 5


def test_changes_tell_nothing_of_other_namespaces(db) -> None:
    token = create_token("t", TokenGrant(Role.VIEWER, namespaces=("team",)), by=SYSTEM)
    client = Client(headers={"host": "localhost", "authorization": f"Bearer {token}"})
    found = results(client, "changes", **{"from": at(0), "to": at(120)})
    assert {row["namespace"] for row in found} == {"", "team"}
    assert client.get("/api/v1/reservations", {"at": at(55)}).json()["results"][0]["pod"] == "a"


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"from": at(5), "to": at(5)},
        {"from": at(5), "to": at(9), "entity": "pod"},
        {"from": at(5), "to": at(9), "node": ""},
    ],
)
def test_changes_without_sense_are_refused(client: Client, query) -> None:
    assert client.get("/api/v1/changes", query).status_code == 400


@pytest.mark.parametrize(
    ("path", "queries"),
    [
        (f"nodes?at={at(35)}", 1),
        (f"gpus?at={at(35)}", 3),  # states, blocked, names of profiles
        (f"reservations?at={at(35)}", 1),
        (f"gpus/{GPUS[0]}/map?at={at(35)}", 3),  # states, blocked, reservations
        (f"changes?from={at(0)}&to={at(120)}", 1),
    ],
)
def test_the_past_takes_a_fixed_number_of_queries(
    client: Client, path, queries, django_assert_num_queries
) -> None:
    client.get(f"/api/v1/{path}")
    with django_assert_num_queries(queries + 1):  # and the token
        assert client.get(f"/api/v1/{path}").status_code == 200
