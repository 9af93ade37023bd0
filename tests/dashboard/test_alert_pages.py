"""Alerts and drift on pages."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection
from django.test import Client
from django.utils import timezone

from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.history_wording import ALERTS, CAUSES, KINDS
from hami_web.history.conditions import AlertCode
from hami_web.history.models import Alert, AlertState, Drift, DriftCause, Reconciliation
from hami_web.inventory.observed import DifferenceKind

from .given import GivenMap
from .test_drawing import GPU, IDENTITY, drawn, node, pod

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("live")]


def alert(code: str, subject: str, namespace: str = "", **more) -> Alert:
    now = timezone.now()
    values = {"text": f"details of {subject}", "raised_at": now, "seen_at": now} | more
    return Alert.objects.create(code=code, subject=subject, namespace=namespace, **values)


def test_every_code_has_words_and_a_mend() -> None:
    assert set(ALERTS) == set(AlertCode)
    assert set(CAUSES) == set(DriftCause.values)
    assert set(KINDS) == set(DifferenceKind)


def test_current_alerts_are_listed_and_old_ones_on_demand(client: Client) -> None:
    now = timezone.now()
    alert(AlertCode.AGENT_STALE, "gpu-01")
    alert(AlertCode.CONFLICT, "over", state=AlertState.RESOLVED, resolved_at=now)
    alert(
        AlertCode.ORPHAN_INSTANCE, "known", state=AlertState.ACKNOWLEDGED, acknowledged_at=now,
        acknowledged_by="lin", note="ticket 7",
    )  # fmt: skip
    page = client.get("/alerts").content.decode()
    assert "details of gpu-01" in page
    assert "Bring the node or its agent back" in page
    assert "lin knows of it. ticket 7" in page
    assert "details of over" not in page
    assert "details of over" in client.get("/alerts?show=all").content.decode()


def test_without_alerts_the_page_says_what_is_looked_for(client: Client) -> None:
    assert "Nothing needs attention" in client.get("/alerts").content.decode()


def test_alerts_of_hidden_namespaces_are_left_out(client: Client, settings) -> None:
    alert(AlertCode.UNREALIZED, "theirs", "secret")
    alert(AlertCode.UNREALIZED, "ours", "team")
    alert(AlertCode.AGENT_STALE, "gpu-01")
    settings.ANONYMOUS_NAMESPACES = ("team",)
    page = client.get("/alerts").content.decode()
    assert "details of ours" in page
    assert "Bring the node or its agent back" in page
    assert "details of gpu-01" not in page  # it may name Pods of any namespace
    assert "theirs" not in page


def test_an_unknown_choice_of_alerts_is_refused(client: Client) -> None:
    response = client.get("/alerts?show=some")
    assert response.status_code == 400
    assert "current, all" in response.content.decode()


def test_drift_is_told_with_cause_and_the_last_comparison(client: Client, settings) -> None:
    now = timezone.now()
    run = Reconciliation.objects.create(
        began_at=now - timedelta(seconds=2), finished_at=now, nodes=3, pods=40, corrections=1
    )
    Drift.objects.create(
        reconciliation=run, at=now, cause=DriftCause.ALTERED, kind=DifferenceKind.VANISHED,
        entity="reservation", key="team/a 0.0", detail="",
    )  # fmt: skip
    page = client.get("/drift").content.decode()
    assert "Last compared with 3 nodes and 40 Pods: 1 corrections." in page
    assert "rows were changed by another hand" in page
    assert "team/a 0.0" in page
    settings.ANONYMOUS_NAMESPACES = ("team",)
    assert "team/a" not in client.get("/drift").content.decode()


def test_each_correction_of_a_place_has_the_three_sources_of_now_beside_it(
    client: Client, live: GivenMap
) -> None:
    known = drawn([node()], [pod("a", 0, 1, IDENTITY), pod("b", 4, 1)])
    live.show(ClusterMap(9, known.nodes, (), known.records))
    now = timezone.now()
    run = Reconciliation.objects.create(
        began_at=now, finished_at=now, nodes=1, pods=2, corrections=1
    )
    keys = {
        "reservation": f"team/a 0.0 1g.5gb {GPU} 0:1", "hold": f"team/over 0.0 1g.5gb {GPU} 2:1",
        "blocked": "GPU-gone 4:4", "gpu": GPU, "node": "n1", "doubt": "team/a odd 0:1",
    }  # fmt: skip
    for entity, key in keys.items():
        Drift.objects.create(
            reconciliation=run, at=now, cause=DriftCause.ALTERED, kind=DifferenceKind.CHANGED,
            entity=entity, key=key, detail="phase",
        )  # fmt: skip
    told = json.loads(client.get("/drift?format=json").content)["rows"]
    by_entity = {row["entity"]: row for row in told}
    reservation = by_entity["reservation"]
    assert (reservation["now"], reservation["placement"]) == ("mirror lacks it", "0:1")
    assert reservation["now_reservation"] == "team/a 1g.5gb"
    assert reservation["now_node"] == IDENTITY.mig_uuid
    assert (reservation["now_mirror"], by_entity["hold"]["now"]) == ("", "agree")
    assert by_entity["blocked"]["now"] == "agree"  # nobody names it any more
    assert {by_entity[name]["now"] for name in ("gpu", "node", "doubt")} == {""}
    page = client.get("/drift").content.decode()
    assert page.count("the mirror lacks it") == 1
    assert page.count(f'href="/gpus/{GPU}"') == 3
    assert 'href="/nodes/n1"' in page
    assert "/gpus/GPU-gone" not in page


def test_a_mirror_that_was_never_compared_says_so(client: Client) -> None:
    page = client.get("/drift").content.decode()
    assert "The mirror was never compared with the cluster" in page


@pytest.mark.parametrize("path", ["/alerts", "/drift"])
def test_without_the_database_the_page_says_so(client: Client, path: str) -> None:
    def broken(*_: object) -> None:
        raise DatabaseError("gone")

    with connection.execute_wrapper(lambda *_: broken()):
        response = client.get(path)
    assert response.status_code == 503
    assert "The history cannot be read" in response.content.decode()


@pytest.mark.parametrize("path", ["/alerts", "/alerts?show=all", "/drift"])
def test_a_list_page_is_a_fixed_number_of_queries(
    client: Client, path: str, django_assert_max_num_queries
) -> None:
    for number in range(30):
        alert(AlertCode.AGENT_STALE, f"gpu-{number}")
    with django_assert_max_num_queries(2):
        client.get(path)
