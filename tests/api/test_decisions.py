"""What the API tells of decisions, and to whom."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.test import Client

from hami_web.access.audit import SYSTEM
from hami_web.access.roles import Role
from hami_web.access.tokens import TokenGrant, create_token
from hami_web.history.decisions import SeenDecision, note_decisions
from hami_web.history.refusals import ObservedRefusal, note_refusals
from tests.mirror.observations import moment

pytestmark = pytest.mark.django_db
PLACE = {"uid": "u", "profile": "1g.5gb", "start": 5, "size": 1}
WHY = {
    "reasons": {"CardMigTopologyInfeasible": 1},
    "nodes": [{"node": "n1", "gpus": [{"gpu_uuid": "GPU-0"}], "doubts": ["Pod b/secret: JSON"]}],
    "nearest": {
        "node": "n1",
        "reservations": [
            {"namespace": "team", "name": "own", **PLACE},
            {"namespace": "b", "name": "secret", **PLACE},
        ],
        "text": "3g.20gb would fit without b/secret",
    },
}


@pytest.fixture(autouse=True)
def _decided(db) -> None:
    facts = {"uid": "w", "namespace": "team", "name": "w"}
    note_decisions(
        [
            SeenDecision(
                "r-1", "refused", **facts, message="no placement", first_at=moment(1),
                last_at=moment(9), times=4, explanation=json.dumps(WHY).encode(),
            ),
            SeenDecision(
                "r-2", "bind_failed", **facts, message="the node waits for b/secret",
                first_at=moment(2), last_at=moment(2), times=1, node="n1", code="mig.bind.busy",
            ),
            SeenDecision(
                "r-3", "held", uid="o", namespace="other", name="o", message="find fit node(n1)",
                first_at=moment(3), last_at=moment(3), times=1, node="n1",
            ),
        ]
    )  # fmt: skip
    note_refusals([ObservedRefusal("w", "team", "w", "0/1 nodes")], seen_at=moment(5))


@pytest.fixture
def teammate(db) -> Client:
    token = create_token("t", TokenGrant(Role.VIEWER, namespaces=("team",)), by=SYSTEM)
    return Client(headers={"host": "localhost", "authorization": f"Bearer {token}"})


def results(client: Client, path: str, **query: str) -> list[dict]:
    answer = client.get(f"/api/v1/{path}", query)
    assert answer.status_code == 200, answer.content
    return answer.json()["results"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, ["refused", "held", "bind_failed"]),
        ({"namespace": "team"}, ["refused", "bind_failed"]),
        ({"outcome__in": "held,bound"}, ["held"]),
        ({"code": "mig.bind.busy"}, ["bind_failed"]),
        ({"last_at__gte": "2026-01-01T00:00:05Z"}, ["refused"]),
        ({"ordering": "first_at"}, ["refused", "bind_failed", "held"]),
    ],
)
def test_decisions_are_filtered_and_ordered(client: Client, query, found) -> None:
    assert [row["outcome"] for row in results(client, "decisions", **query)] == found


def test_why_has_reasons_by_gpu_and_both_schedulers_words_newest_first(client: Client) -> None:
    found = results(client, "pods/team/w/why")
    assert [(row["said_by"], row["message"]) for row in found] == [
        ("extender", "no placement"),
        ("kube-scheduler", "0/1 nodes"),
        ("extender", "the node waits for b/secret"),
    ]
    assert (found[0]["times"], found[0]["explanation"]) == (4, WHY)


def test_why_is_also_csv(client: Client) -> None:
    answer = client.get("/api/v1/pods/team/w/why", {"format": "csv"})
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert json.loads(rows[0]["explanation"]) == WHY


def test_why_names_nobody_that_the_caller_may_not_see(teammate: Client) -> None:
    answer = teammate.get("/api/v1/pods/team/w/why")
    assert b"secret" not in answer.content
    nearest = answer.json()["results"][0]["explanation"]["nearest"]
    seen = [(item["namespace"], item["name"], item["start"]) for item in nearest["reservations"]]
    assert seen == [("team", "own", 5), ("unavailable", "unavailable", 5)]
    assert nearest["text"] == "unavailable"


def test_decisions_of_other_namespaces_are_not_there(teammate: Client) -> None:
    assert {row["namespace"] for row in results(teammate, "decisions")} == {"team"}
    assert b"secret" not in teammate.get("/api/v1/decisions").content
    assert teammate.get("/api/v1/pods/other/o/why").status_code in (403, 404)


@pytest.mark.parametrize(("path", "queries"), [("decisions", 1), ("pods/team/w/why", 2)])
def test_an_answer_takes_a_fixed_number_of_queries(
    client: Client, path, queries, django_assert_num_queries
) -> None:
    client.get(f"/api/v1/{path}")
    with django_assert_num_queries(queries + 1):  # and the token
        assert client.get(f"/api/v1/{path}").status_code == 200
