"""Readiness checks as the API tells them, and what their rows refuse."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from hami_web.access.models import AuditEntry
from hami_web.migration.models import Finding, MigrationRun, NodeReadiness
from tests.mirror.observations import moment

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(db) -> MigrationRun:
    run = MigrationRun.objects.create(
        state="finished", requested_at=moment(0), requested_by="ann", finished_at=moment(9)
    )
    NodeReadiness.objects.create(run=run, node="n1", readiness="ready", checked_at=moment(5))
    NodeReadiness.objects.create(run=run, node="n2", readiness="not_ready", checked_at=moment(5))
    for severity, subject in (("blocker", "Node/n2"), ("note", "ConfigMap/kube-system/device")):
        Finding.objects.create(
            run=run, node="n2", severity=severity, code="MigConfigLabel", subject=subject,
            evidence="nvidia.com/mig.config=all-1g.5gb",
        )  # fmt: skip
    return run


def results(client: Client, path: str, **query: str) -> list[dict]:
    answer = client.get(f"/api/v1/migration-runs{path}", query)
    assert answer.status_code == 200, answer.content
    return answer.json()["results"]


def test_runs_nodes_and_findings_are_lists_with_filters(client: Client, run) -> None:
    [found] = results(client, "", state="finished", requested_by="ann")
    assert (found["id"], found["error"]) == (run.pk, "")
    nodes = results(client, f"/{run.pk}/nodes")
    assert [(row["node"], row["readiness"]) for row in nodes] == [
        ("n1", "ready"),
        ("n2", "not_ready"),
    ]
    [finding] = results(client, f"/{run.pk}/findings", severity="blocker")
    assert finding["subject"] == "Node/n2"
    assert finding["mend"].startswith("kubectl label node n2 nvidia.com/mig.config-")


def test_an_unknown_run_is_404(client: Client, run) -> None:
    for part in ("nodes", "findings"):
        assert client.get(f"/api/v1/migration-runs/{run.pk + 1}/{part}").status_code == 404


@pytest.mark.parametrize(("path", "queries"), [("", 1), ("/{}/nodes", 2), ("/{}/findings", 2)])
def test_an_answer_takes_a_fixed_number_of_queries(
    client: Client, run, path, queries, django_assert_num_queries
) -> None:
    url = f"/api/v1/migration-runs{path.format(run.pk)}"
    client.get(url)
    with django_assert_num_queries(queries + 1):  # and the token
        assert client.get(url).status_code == 200


@pytest.mark.parametrize(
    "facts",
    [{"state": "finished"}, {"finished_at": moment(1)},
     {"state": "failed", "finished_at": moment(1)}, {"error": "why"}],
)  # fmt: skip
def test_no_run_contradicts_itself(facts) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        MigrationRun.objects.create(requested_at=moment(0), requested_by="ann", **facts)


def post(client: Client, path: str, body: str = "{}"):
    return client.post(f"/api/v1/migration-runs{path}", body, content_type="application/json")


@pytest.mark.parametrize(
    ("body", "status", "node"),
    [('{"node": "gpu-1"}', 202, "gpu-1"), ("{}", 202, ""), ('{"node": "a=b"}', 400, None)],
)
def test_one_node_may_be_named_when_a_check_is_asked_for(
    client: Client, body: str, status: int, node: str | None
) -> None:
    answer = post(client, "/start", body)
    assert (answer.status_code, answer.json().get("node")) == (status, node)
    assert MigrationRun.objects.count() == (status == 202)


def test_a_finding_speaks_the_language_of_the_request(client: Client, run) -> None:
    path = f"/api/v1/migration-runs/{run.pk}/findings"
    answer = client.get(path, headers={"accept-language": "zh-hans"})
    assert "关闭 MIG Manager" in answer.json()["results"][0]["mend"]


def test_a_check_is_started_followed_and_cancelled(client: Client, run) -> None:
    started = post(client, "/start")
    assert started.status_code == 202, started.content
    document = started.json()
    assert started["Location"] == f"/api/v1/migration-runs/{document['id']}"
    assert (document["state"], document["parts_done"]) == ("requested", 0)
    again = post(client, "/start")
    assert (again.status_code, again.json()["current"]["id"]) == (409, document["id"])
    assert client.get(started["Location"]).json()["state"] == "requested"
    cancelled = post(client, f"/{document['id']}/cancel")
    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
    assert post(client, f"/{document['id']}/cancel").status_code == 409
    assert post(client, f"/{run.pk}/cancel").status_code == 409
    verbs = AuditEntry.objects.filter(verb__startswith="migration.").values_list("verb", flat=True)
    assert {"migration.check", "migration.cancel"} <= set(verbs)


def test_a_body_with_something_in_it_is_refused(client: Client, run) -> None:
    assert post(client, "/start", '{"nodes": "n1"}').status_code == 400
    assert post(client, f"/{run.pk + 7}/cancel").status_code == 404
