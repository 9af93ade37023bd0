"""Cordon and uncordon through a simulated API server; alerts acknowledged; all of it recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.test import Client

from hami_web.access.audit import SYSTEM
from hami_web.access.models import AuditEntry
from hami_web.access.roles import Role
from hami_web.access.tokens import TokenGrant, create_token
from hami_web.core import annotations as keys
from hami_web.core.capability import NodeCapability
from hami_web.core.registration import encode_registration
from hami_web.history.models import Alert
from hami_web.inventory.models import Gpu
from hami_web.simulator.client import ApiClient, Endpoint
from hami_web.simulator.faults import RequestMatch
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig
from hami_web.verbs import cluster
from tests.builders import a100_40gb
from tests.mirror.observations import GPUS, moment

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("mirror")]
Annotations = Callable[[], dict[str, str]]


@pytest.fixture
def server(settings, tmp_path) -> Iterator[SimulatedApiServer]:
    with SimulatedApiServer() as running:
        settings.KUBECONFIG = write_kubeconfig(tmp_path / "kubeconfig", server=running.url)
        yield running
        cluster._client.cache_clear()


@pytest.fixture
def api(server: SimulatedApiServer) -> Iterator[ApiClient]:
    with_gpus = encode_registration(NodeCapability((a100_40gb(GPUS[0]), a100_40gb(GPUS[1], 1))))
    notes = {keys.NODE_REGISTER: with_gpus, keys.NODE_DEVICE_CORDON: "GPU-old"}
    client = ApiClient(Endpoint(server.url))
    metadata = {"name": "n1", "annotations": notes}
    client.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    yield client
    client.close()


def cordoned(api: ApiClient) -> str | None:
    return api.get("/api/v1/nodes/n1")["metadata"]["annotations"].get(keys.NODE_DEVICE_CORDON)


def send(client: Client, verb: str, uuid: str = GPUS[0], body: object = None, **headers: str):
    return client.post(
        f"/api/v1/gpus/{uuid}/{verb}", body or {}, content_type="application/json", headers=headers
    )


def caller(role: Role) -> Client:
    token = create_token(role.value, TokenGrant(role), by=SYSTEM)
    return Client(headers={"host": "localhost", "authorization": f"Bearer {token}"})


def test_a_cordon_joins_the_others_and_goes_again(api: ApiClient) -> None:
    operator = caller(Role.OPERATOR)
    answer = send(operator, "cordon")
    assert answer.json() == {"uuid": GPUS[0], "node": "n1", "cordoned": True, "changed": True}
    assert cordoned(api) == f"GPU-old,{GPUS[0]}"
    assert send(operator, "cordon").json()["changed"] is False
    assert send(operator, "uncordon").json()["changed"] is True
    assert cordoned(api) == "GPU-old"


def test_the_caller_and_the_reason_are_recorded(api: ApiClient) -> None:
    send(caller(Role.OPERATOR), "cordon", body={"reason": "fan is loud"})
    begun, done = AuditEntry.objects.filter(verb="gpu.cordon").order_by("pk")
    assert (begun.outcome, done.outcome) == ("begun", "done")
    assert (done.actor, done.role, done.name) == ("operator", "operator", GPUS[0])
    assert (done.before, done.after) == ({"cordoned": False}, {"cordoned": True})
    assert done.detail == "fan is loud"


def test_a_viewer_changes_nothing(api: ApiClient) -> None:
    answer = send(caller(Role.VIEWER), "cordon")
    assert (answer.status_code, answer.json()["code"]) == (403, "request.forbidden")
    assert cordoned(api) == "GPU-old"


def test_a_tag_of_the_state_lets_the_verb_pass_and_an_old_one_does_not(api: ApiClient) -> None:
    operator = caller(Role.OPERATOR)
    tag = operator.get(f"/api/v1/gpus/{GPUS[0]}")["ETag"]
    Gpu.objects.update(healthy=False)
    answer = send(operator, "cordon", if_match=tag)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (412, "request.precondition_failed")
    assert (problem["current"]["uuid"], problem["current"]["healthy"]) == (GPUS[0], False)
    assert cordoned(api) == "GPU-old"
    assert send(operator, "cordon", if_match=problem["etag"]).status_code == 200
    assert send(operator, "uncordon", if_match="*").status_code == 200


def test_a_race_with_another_writer_is_tried_again(server, api: ApiClient) -> None:
    server.faults.answer(409, RequestMatch(verb="patch"), times=2)
    assert send(caller(Role.OPERATOR), "cordon").status_code == 200
    assert cordoned(api) == f"GPU-old,{GPUS[0]}"


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        (409, 409, "cluster.conflict"),
        (403, 502, "cluster.rejected"),
        (500, 503, "cluster.outcome_unclear"),
        (429, 503, "cluster.unreachable"),
    ],
)
def test_what_the_api_server_refuses_is_told_and_recorded(
    server, api: ApiClient, code, status, kind
) -> None:
    server.faults.answer(code, RequestMatch(verb="patch"), times=None)
    answer = send(caller(Role.OPERATOR), "cordon")
    assert (answer.status_code, answer.json()["code"]) == (status, kind)
    assert AuditEntry.objects.filter(verb="gpu.cordon").first().outcome == "failed"
    assert cordoned(api) == "GPU-old"


def test_a_lost_answer_is_settled_by_looking(server, api: ApiClient) -> None:
    server.faults.order("lose-answer", RequestMatch(verb="patch"))
    answer = send(caller(Role.OPERATOR), "cordon")
    assert (answer.status_code, answer.json()["changed"]) == (200, True)
    assert cordoned(api) == f"GPU-old,{GPUS[0]}"


def test_no_api_server_is_503(api: ApiClient, settings, tmp_path) -> None:
    settings.KUBECONFIG = write_kubeconfig(tmp_path / "none", server="http://127.0.0.1:1")
    answer = send(caller(Role.OPERATOR), "cordon")
    assert (answer.status_code, answer.json()["code"]) == (503, "cluster.unreachable")


@pytest.mark.parametrize("uuid", [GPUS[2], GPUS[3]])
def test_a_node_that_is_gone_is_a_conflict_with_what_the_mirror_has(api, uuid) -> None:
    answer = send(caller(Role.OPERATOR), "cordon", uuid)
    assert (answer.status_code, answer.json()["code"]) == (409, "request.conflict")
    assert answer.json()["current"]["node"] == "n2"


def test_a_gpu_that_its_node_has_no_more_is_a_conflict(api: ApiClient) -> None:
    empty = {"metadata": {"annotations": {keys.NODE_REGISTER: "[]"}}}
    api.patch("/api/v1/nodes/n1", empty)
    operator = caller(Role.OPERATOR)
    assert send(operator, "cordon").status_code == 409
    assert send(operator, "uncordon").status_code == 200


@pytest.mark.parametrize("body", [{"reason": 1}, {"reason": "x" * 1001}, {"why": "x"}, [1]])
def test_a_body_without_sense_is_400(api: ApiClient, body) -> None:
    assert send(caller(Role.OPERATOR), "cordon", body=body).status_code == 400


def test_an_unknown_gpu_is_404(api: ApiClient) -> None:
    assert send(caller(Role.OPERATOR), "cordon", "GPU-none").status_code == 404


@pytest.fixture
def alert(db) -> Alert:
    return Alert.objects.create(
        code="X", subject="s", namespace="team", text="t", raised_at=moment(1), seen_at=moment(1)
    )


def say(client: Client, alert: Alert, note: str, **headers: str):
    url = f"/api/v1/alerts/{alert.pk}/acknowledge"
    return client.post(url, {"note": note}, content_type="application/json", headers=headers)


def test_an_alert_is_acknowledged_by_its_caller_once_for_all(alert: Alert) -> None:
    operator = caller(Role.OPERATOR)
    first = say(operator, alert, "on it").json()
    assert (first["state"], first["acknowledged_by"], first["note"]) == (
        "acknowledged",
        "operator",
        "on it",
    )
    assert say(operator, alert, "nearly done").status_code == 200
    late = say(caller(Role.ADMIN), alert, "me too")
    assert (late.status_code, late.json()["code"]) == (409, "request.conflict")
    assert late.json()["current"]["acknowledged_by"] == "operator"
    outcomes = AuditEntry.objects.filter(verb="alert.acknowledge").order_by("pk")
    assert [row.outcome for row in outcomes] == ["begun", "done"] * 2 + ["begun", "failed"]


def test_an_alert_in_another_state_than_the_tag_names_is_412(alert: Alert) -> None:
    operator = caller(Role.OPERATOR)
    tag = operator.get(f"/api/v1/alerts/{alert.pk}")["ETag"]
    assert say(operator, alert, "on it", if_match=tag).status_code == 200
    assert say(operator, alert, "again", if_match=tag).status_code == 412


def test_a_viewer_acknowledges_nothing(alert: Alert) -> None:
    assert say(caller(Role.VIEWER), alert, "x").status_code == 403
    assert Alert.objects.get().state == "open"
