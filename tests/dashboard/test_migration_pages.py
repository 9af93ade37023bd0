"""The pages of moving in: what a check found, how far it is, and the converter."""

from __future__ import annotations

import pytest
from django.test import Client

from hami_web.access.models import AuditEntry
from hami_web.migration.models import Finding, MigrationRun, NodeReadiness
from tests.mirror.observations import moment

from .given import GivenMap

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _admin(settings, live: GivenMap) -> None:
    settings.ANONYMOUS_ROLE = "admin"


@pytest.fixture
def run() -> MigrationRun:
    run = MigrationRun.objects.create(
        state="finished", requested_at=moment(0), requested_by="ann", finished_at=moment(9)
    )
    for node, readiness in (("n1", "ready"), ("n2", "not_ready")):
        NodeReadiness.objects.create(run=run, node=node, readiness=readiness, checked_at=moment(5))
    Finding.objects.create(
        run=run, node="n2", severity="blocker", code="MigConfigLabel", subject="Node n2",
        evidence="label nvidia.com/mig.config=all-1g.5gb",
    )  # fmt: skip
    Finding.objects.create(
        run=run, node="", severity="warning", code="WebhookMissing", subject="webhook",
        evidence="none calls our Service",
    )  # fmt: skip
    return run


def text(client: Client, path: str, status: int = 200, **headers: str) -> str:
    answer = client.get(path, headers=headers)
    assert answer.status_code == status, answer.content[-2000:]
    return answer.content.decode()


def test_without_a_check_the_page_says_what_one_is(client: Client) -> None:
    shown = text(client, "/migration")
    assert "Nothing was checked yet" in shown
    assert "Check the cluster now" in shown


def test_the_newest_check_is_shown_node_by_node(client: Client, run: MigrationRun) -> None:
    shown = text(client, "/migration")
    assert "1 of 2 nodes with GPUs are ready" in shown
    assert f'href="/migration/{run.pk}?node=n2"' in shown
    assert "1 blocker" in shown


def test_findings_are_narrowed_by_node_and_severity(client: Client, run: MigrationRun) -> None:
    whole = text(client, f"/migration/{run.pk}")
    assert "kubectl label node n2 nvidia.com/mig.config-" in whole
    of_node = text(client, f"/migration/{run.pk}?node=n1")
    assert "MigConfigLabel" not in of_node
    assert "WebhookMissing" in of_node  # what concerns the cluster concerns every node
    blockers = text(client, f"/migration/{run.pk}?severity=blocker")
    assert "WebhookMissing" not in blockers
    assert "blocker, warning, note" in text(client, f"/migration/{run.pk}?severity=x", 400)
    text(client, f"/migration/{run.pk + 1}", 404)


def test_words_are_those_of_the_language(client: Client, run: MigrationRun) -> None:
    shown = text(client, f"/migration/{run.pk}", **{"accept-language": "zh-hans"})
    assert "阻碍" in shown
    assert "关闭 MIG Manager" in shown


def test_who_sees_not_every_namespace_reads_no_names_of_pods(
    client: Client, run: MigrationRun, settings
) -> None:
    settings.ANONYMOUS_NAMESPACES = ("team",)
    shown = text(client, f"/migration/{run.pk}")
    assert "MigConfigLabel" in shown
    assert "all-1g.5gb" not in shown


def test_a_check_that_goes_on_shows_progress_and_comes_again(client: Client) -> None:
    row = MigrationRun.objects.create(
        state="running", requested_at=moment(0), requested_by="ann", started_at=moment(1),
        seen_at=moment(1), part="pods", parts_done=2, parts=10,
    )  # fmt: skip
    shown = text(client, f"/migration/{row.pk}")
    assert '<meta http-equiv="refresh" content="2">' in shown
    assert 'value="20"' in shown
    cancelled = client.post(f"/migration/{row.pk}/cancel")
    assert cancelled["Location"] == f"/migration/{row.pk}"
    assert "http-equiv" not in text(client, f"/migration/{row.pk}")
    assert client.post(f"/migration/{row.pk}/cancel").status_code == 409
    assert client.post(f"/migration/{row.pk + 1}/cancel").status_code == 404


def test_a_check_is_asked_for_once_and_written_down(client: Client) -> None:
    first = client.post("/migration/start")
    again = client.post("/migration/start")
    assert first["Location"] == again["Location"]
    assert MigrationRun.objects.count() == 1
    assert AuditEntry.objects.filter(verb="migration.check").exists()


def test_a_viewer_reads_and_starts_nothing(client: Client, settings, run) -> None:
    settings.ANONYMOUS_ROLE = "viewer"
    assert "Check the cluster now" not in text(client, "/migration")
    assert client.post("/migration/start").status_code in (302, 403)
    assert MigrationRun.objects.count() == 1


GEOMETRIES = (
    "nvidia:\n  knownMigGeometries:\n  - models: [A30]\n    allowedGeometries:\n"
    "    - - {name: 1g.6gb, count: 4}\n"
)


def test_the_converter_answers_with_an_allowlist_and_its_reasons(client: Client) -> None:
    shown = client.post("/migration/converter", {"text": GEOMETRIES}).content.decode()
    assert "profiles: [&quot;1g.6gb&quot;]" in shown
    assert "FromGeometry" in shown


def test_the_converter_says_what_is_other_than_now(client: Client) -> None:
    now = "nvidia: {migProfileAllowlist: [{models: [A30], profiles: [4g.24gb]}]}"
    form = {"text": GEOMETRIES, "current": now}
    shown = client.post("/migration/converter", form).content.decode()
    assert "<code>A30: +1g.6gb -4g.24gb</code>" in shown
    same = {"text": GEOMETRIES, "current": now.replace("4g.24gb", "1g.6gb")}
    assert "It permits the same." in client.post("/migration/converter", same).content.decode()
    wrong = client.post("/migration/converter", {"text": GEOMETRIES, "current": "a: ["})
    assert wrong.status_code == 400
    assert "current" in wrong.content.decode()


@pytest.mark.parametrize("given", ["a: [", "x: 1", "<script>alert(1)</script>", "y" * 200_001])
def test_what_cannot_be_converted_is_refused_with_its_reason(client: Client, given: str) -> None:
    answer = client.post("/migration/converter", {"text": given})
    assert answer.status_code == 400
    assert "It cannot be converted" in answer.content.decode()
    assert b"<script>alert" not in answer.content


@pytest.mark.parametrize(("path", "queries"), [("/migration", 5), ("/migration/{}", 4)])
def test_a_page_takes_a_fixed_number_of_queries(
    client: Client, run: MigrationRun, path: str, queries: int, django_assert_num_queries
) -> None:
    for number in range(20):
        node = f"x{number}"
        NodeReadiness.objects.create(run=run, node=node, readiness="ready", checked_at=moment(5))
    with django_assert_num_queries(queries):
        client.get(path.format(run.pk))
