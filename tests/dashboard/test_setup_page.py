"""The setup page: green where it was looked at, red with what mends it, else unknown."""

from __future__ import annotations

import base64
import re
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from django.db import DatabaseError, connection
from django.test import Client
from django.utils import timezone

from hami_web.access.reviewer import close_reviewer, reviewer
from hami_web.cluster.views import NodeCondition, NodeStatus, NodeView, ObjectMeta
from hami_web.core import annotations as keys
from hami_web.dashboard import setup_checks
from hami_web.dashboard.freshness import Freshness
from hami_web.dashboard.service_accounts import RIGHTS, account, lacking, rights_of
from hami_web.dashboard.setup_page import read_recorded
from hami_web.dashboard.setup_records import Recorded
from hami_web.dashboard.setup_words import COMMANDS, MENDS, TITLES
from hami_web.history.conditions import AlertCode
from hami_web.history.models import Alert, Decision, Feed, Heartbeat, Reconciliation
from hami_web.migration.models import MigrationRun
from hami_web.simulator.identity import AccessRule
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig

from .conftest import GivenMap
from .test_drawing import drawn, node, pod

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _cluster(live: GivenMap, settings, tmp_path: Path) -> None:
    settings.KUBECONFIG = tmp_path / "none"
    live.show(drawn([node()], [pod("a", 0, 1)]))


@pytest.fixture
def worked() -> None:
    """A worker that has just done everything."""
    now = timezone.now()
    Feed.objects.create(name="mirror", caught_up_at=now)
    Heartbeat.objects.create(name="queue", at=now)
    Heartbeat.objects.create(name="extender", at=now)
    Reconciliation.objects.create(began_at=now, finished_at=now, nodes=1, pods=1, corrections=0)


def found(client: Client, **headers: str) -> dict[str, str]:
    """State of each check by code."""
    answer = client.get("/setup", headers=headers)
    assert answer.status_code == 200
    page = answer.content.decode()
    rows = re.findall(r'<tr id="check-([\w-]+)">.*?class="mark-(\w+)"', page, re.DOTALL)
    return dict(rows)


def test_every_check_is_there_once_with_words_a_mend_and_a_command(client: Client) -> None:
    assert set(found(client)) == set(TITLES) == set(MENDS) == set(COMMANDS)


def test_what_nobody_can_look_at_is_never_called_good(client: Client) -> None:
    states = found(client)
    for code in ("webhook", "certificate", "scheduler", "extender", "signing", "owner", "clocks"):
        assert states[code] == "unknown", code
    assert {states[f"rights-{role}"] for role in RIGHTS} == {"unknown"}


@pytest.mark.usefixtures("worked")
def test_a_worker_that_works_is_good_and_one_that_never_ran_is_not(client: Client) -> None:
    parts = ("feed", "queue", "comparison", "extender", "owner", "clocks", "migrations")
    states = found(client)
    assert {states[code] for code in parts} == {"good"}
    Heartbeat.objects.all().delete()
    assert found(client)["queue"] == "bad"


@pytest.mark.usefixtures("worked")
def test_an_extender_that_is_silent_while_the_worker_asks_is_bad(client: Client) -> None:
    Heartbeat.objects.filter(name="extender").update(at=timezone.now() - timedelta(minutes=5))
    assert found(client)["extender"] == "bad"
    Feed.objects.update(caught_up_at=timezone.now() - timedelta(hours=1))
    states = found(client)
    assert states["feed"] == "bad"
    assert states["extender"] == "unknown"


def test_the_scheduler_is_known_by_what_the_extender_decided(client: Client) -> None:
    now = timezone.now()
    decision = Decision.objects.create(
        pod_uid="u", namespace="team", pod="a", outcome="bound", digest="d", message="m", times=1,
        first_at=now, last_at=now, entry="e", entry_times=1,
    )  # fmt: skip
    assert found(client)["scheduler"] == "good"
    decision.first_at = decision.last_at = now - timedelta(days=1)
    decision.save()
    assert found(client)["scheduler"] == "unknown"


@pytest.mark.parametrize(
    ("code", "state"),
    [(None, "good"), ("WebhookMissing", "bad"), ("WebhookWithoutAuthority", "bad"),
     ("CouldNotLook", "unknown")],
)  # fmt: skip
def test_the_webhook_is_known_by_the_last_readiness_check(
    client: Client, code: str | None, state: str
) -> None:
    now = timezone.now()
    run = MigrationRun.objects.create(
        state="finished", requested_at=now, requested_by="a", finished_at=now
    )
    if code:
        run.findings.create(severity="blocker", code=code, subject="webhook", evidence="e")
    assert found(client)["webhook"] == state
    MigrationRun.objects.update(
        requested_at=now - timedelta(days=3), finished_at=now - timedelta(days=2)
    )
    assert found(client)["webhook"] == "unknown"


@pytest.mark.usefixtures("worked")
@pytest.mark.parametrize(
    ("code", "check"),
    [(AlertCode.OTHER_OWNER, "owner"), (AlertCode.RESERVATION_UNSIGNED, "signing")],
)
def test_an_alert_makes_its_check_red(client: Client, code: AlertCode, check: str) -> None:
    now = timezone.now()
    Alert.objects.create(code=code, subject="n1", text="t", raised_at=now, seen_at=now)
    assert found(client)[check] == "bad"


def test_signing_keys_are_read_where_they_are_given(client: Client, settings, tmp_path) -> None:
    settings.SIGNING_KEYS = tmp_path / "keys"
    assert found(client)["signing"] == "bad"
    settings.SIGNING_KEYS.write_text(f"k1 {base64.b64encode(bytes(32)).decode()}\n")
    assert found(client)["signing"] == "good"


def test_nodes_that_publish_nothing_readable_are_named(client: Client, live: GivenMap) -> None:
    states = found(client)
    assert states["nodes"] == states["agents"] == states["capability"] == "good"
    live.show(drawn([], []))
    states = found(client)
    assert states["nodes"] == "bad"
    assert states["agents"] == states["capability"] == "unknown"
    register = node().annotations[keys.NODE_REGISTER].replace("12345678", "87654321")
    away = NodeView(
        ObjectMeta("away", uid="away", annotations={keys.NODE_REGISTER: register}),
        status=NodeStatus(conditions=[NodeCondition("Ready", "False")]),
    )
    live.show(drawn([node(), away], []))
    assert found(client)["agents"] == "bad"
    assert "away" in client.get("/setup").content.decode()


def test_without_an_answer_of_the_cluster_the_page_is_there(client: Client, live: GivenMap) -> None:
    live._map = None
    live.told = Freshness(None, "GET /api/v1/nodes: no connection")
    states = found(client)
    assert states["api-server"] == "bad"
    assert states["nodes"] == "unknown"
    live.told = Freshness(300.0, "watch ended")
    assert found(client)["api-server"] == "bad"


def test_without_the_database_the_page_is_there(client: Client) -> None:
    def broken(*_: object) -> None:
        raise DatabaseError("gone")

    with connection.execute_wrapper(lambda *_: broken()):
        states = found(client)
    assert states["database"] == "bad"
    assert states["feed"] == states["migrations"] == "unknown"


def test_a_migration_that_is_missing_is_named(client: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'history'")
    assert found(client)["migrations"] == "bad"
    assert "history.0001" in client.get("/setup").content.decode()


def test_clocks_that_differ_are_bad() -> None:
    now = timezone.now()
    known = Recorded(now, now - timedelta(seconds=9), (), None, None, frozenset(), ())
    check = next(item for item in setup_checks.recorded(known) if item.code == "clocks")
    assert check.state == "bad"
    assert "9.0 s" in check.said


def test_settings_of_the_process_are_looked_at(client: Client, settings) -> None:
    settings.DEBUG, settings.SECRET_KEY_IS_LASTING = False, True
    states = found(client)
    assert [states[code] for code in ("hosts", "cookies", "secret", "debug")] == ["good"] * 4
    settings.ALLOWED_HOSTS = ["*"]
    settings.SECRET_KEY_IS_LASTING = False
    states = found(client, host="dashboard.example.org")
    assert [states[code] for code in ("hosts", "cookies", "secret")] == ["bad"] * 3


@pytest.mark.usefixtures("worked")
def test_the_page_is_a_fixed_number_of_queries(
    client: Client, django_assert_max_num_queries
) -> None:
    with django_assert_max_num_queries(11):
        client.get("/setup")


# --- rights ---


@pytest.fixture
def cluster(settings, tmp_path: Path):
    with SimulatedApiServer() as server:
        settings.KUBECONFIG = write_kubeconfig(tmp_path / "kubeconfig", server=server.url)
        yield server
    close_reviewer()


def granted(role: str) -> list[AccessRule]:
    """What the manifests of a role grant, as rules of the simulated API server."""
    name = account(role, "hami-system")
    documents = yaml.safe_load_all((ROOT / f"deploy/rbac/{role}.yaml").read_text())
    roles = [each for each in documents if each["kind"] in ("ClusterRole", "Role")]
    return [
        AccessRule(
            name, tuple(rule["verbs"]), resource, group, each["metadata"].get("namespace", "")
        )
        for each in roles
        for rule in each["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if "resourceNames" not in rule
    ]


@pytest.mark.parametrize("role", RIGHTS)
def test_the_manifests_grant_what_each_role_needs(cluster: SimulatedApiServer, role: str) -> None:
    cluster.identities.rules.extend(granted(role))
    assert lacking(role, "hami-system", reviewer().rights) == []


def test_a_right_that_is_missing_is_named(cluster: SimulatedApiServer) -> None:
    rules = [rule for rule in granted("extender") if rule.resource != "pods/binding"]
    cluster.identities.rules.extend(rules)
    checks = {item.code: item for item in setup_checks.rights(reviewer().rights)}
    assert checks["rights-extender"].state == "bad"
    assert "create pods/binding" in checks["rights-extender"].said
    assert checks["rights-worker"].state == "bad"


def test_without_an_answer_rights_are_unknown(cluster: SimulatedApiServer) -> None:
    cluster.stop()
    states = {item.state for item in setup_checks.rights(reviewer().rights)}
    assert states == {"unknown"}
    assert len(rights_of("worker", "hami-system")) == 6


def test_what_is_recorded_is_read_without_a_worker() -> None:
    known = read_recorded()
    assert known is not None
    assert not known.worker_works
    assert known.unapplied == ()
