"""Take-overs of nodes over the API: followed by everybody, changed by admins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from hami_web.access.models import AuditEntry
from hami_web.handover import store
from hami_web.handover.models import EventKind, NodeHandover, ProfileTest
from hami_web.handover.obstacles import Obstacle
from hami_web.handover.steps import Direction
from hami_web.simulator.resources import NODES
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig
from tests.migration.clusters import node
from tests.mirror.observations import moment

pytestmark = pytest.mark.django_db
PATH = "/api/v1/handovers"


@pytest.fixture
def handover(db) -> NodeHandover:
    beginning = store.Beginning("n1", "uid-1", Direction.FORWARD, "ann", cordoned=False)
    row = store.begin(beginning, moment(0))
    row.obstacles = [Obstacle("NotCordoned", "Node n1", "spec.unschedulable: false").document()]
    row.would_do, row.step = ["cordon"], "cordon"
    row.save()
    store.tell(row, EventKind.REACHED, moment(1), text="assess")
    ProfileTest.objects.create(
        handover=row, model="A30", profile="1g.6gb", gpu="GPU-1", entered_at=moment(2)
    )
    return row


def post(client: Client, path: str, **body: str):
    return client.post(f"{PATH}{path}", json.dumps(body), content_type="application/json")


def test_lists_tell_where_it_is_what_happened_and_what_was_tried(client, handover) -> None:
    [found] = client.get(PATH, {"node": "n1", "outcome": "open"}).json()["results"]
    assert (found["step"], found["direction"], found["would_do"]) == (
        *("cordon", "forward", ["cordon"]),
    )
    [obstacle] = found["obstacles"]
    assert obstacle["mend"] == "Approve the step, or: kubectl cordon n1"
    events = client.get(f"{PATH}/{handover.pk}/events").json()["results"]
    assert [event["kind"] for event in events] == ["started", "reached"]
    tests = client.get(f"{PATH}/{handover.pk}/tests").json()["results"]
    assert [(test["profile"], test["state"]) for test in tests] == [("1g.6gb", "waiting")]
    assert client.get(f"{PATH}/{handover.pk + 1}/events").status_code == 404


def test_an_obstacle_speaks_the_language_of_the_request(client, handover) -> None:
    answer = client.get(f"{PATH}/{handover.pk}", headers={"accept-language": "zh-hans"})
    assert answer.json()["obstacles"][0]["mend"].startswith("批准该步骤")


def test_a_step_is_approved_and_withdrawn_by_its_name(client, handover) -> None:
    approved = post(client, f"/{handover.pk}/approve", step="cordon")
    assert approved.status_code == 200, approved.content
    assert approved.json()["approved_by"]
    other = post(client, f"/{handover.pk}/approve", step="drain")
    assert (other.status_code, other.json()["current"]["step"]) == (409, "cordon")
    withdrawn = post(client, f"/{handover.pk}/withdraw", step="cordon")
    assert withdrawn.json()["approved_by"] == ""
    wrong = post(client, f"/{handover.pk}/approve", step="everything")
    assert wrong.status_code == 400
    assert wrong.json()["errors"][0]["field"] == "step"


def test_it_is_turned_back_and_closed_once(client, handover) -> None:
    assert post(client, f"/{handover.pk}/turn-back").json()["step"] == "back-cordon"
    assert post(client, f"/{handover.pk}/turn-back").status_code == 409
    assert post(client, f"/{handover.pk}/close").json()["outcome"] == "closed"
    assert post(client, f"/{handover.pk}/close").status_code == 409
    assert post(client, f"/{handover.pk + 7}/close").status_code == 404
    verbs = AuditEntry.objects.filter(verb__startswith="handover.").values_list("verb", flat=True)
    assert {"handover.turn-back", "handover.close"} <= set(verbs)


def test_it_begins_with_a_node_that_is_there(client, settings, tmp_path: Path) -> None:
    with SimulatedApiServer() as server:
        settings.KUBECONFIG = write_kubeconfig(tmp_path / "kubeconfig", server=server.url)
        server.api.store.create(NODES, {**node("n2"), "metadata": {"name": "n2", "uid": "u2"}})
        begun = post(client, "/start", node="n2")
        assert begun.status_code == 201, begun.content
        assert (begun.json()["step"], begun.json()["node_uid"]) == ("assess", "u2")
        assert begun["Location"] == f"{PATH}/{begun.json()['id']}"
        again = post(client, "/start", node="n2", direction="back")
        assert (again.status_code, again.json()["current"]["id"]) == (409, begun.json()["id"])
        gone = post(client, "/start", node="n3")
        assert gone.status_code == 404
        sideways = post(client, "/start", node="n2", direction="up")
        assert sideways.status_code == 400


@pytest.mark.parametrize(
    "facts",
    [{"outcome": "done"}, {"ended_at": moment(9)}, {"approved_by": "ann"}, {"node": "n1"}],
)
def test_no_take_over_contradicts_itself(handover, facts) -> None:
    values = {"node": "n9", "step": "cordon", "started_at": moment(0), "entered_at": moment(0)}
    with pytest.raises(IntegrityError), transaction.atomic():
        NodeHandover.objects.create(**{**values, **facts})


@pytest.mark.parametrize(("path", "queries"), [("", 1), ("/{}", 1), ("/{}/events", 2)])
def test_an_answer_takes_a_fixed_number_of_queries(
    client, handover, path, queries, django_assert_num_queries
) -> None:
    url = f"{PATH}{path.format(handover.pk)}"
    client.get(url)
    with django_assert_num_queries(queries + 1):  # and the token
        assert client.get(url).status_code == 200
