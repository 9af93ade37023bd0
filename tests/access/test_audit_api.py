"""Reading the audit log."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.test import Client

from hami_web.access.audit import SYSTEM, Action, record
from hami_web.access.models import Outcome
from hami_web.access.roles import Role
from hami_web.access.tokens import TokenGrant, create_token

pytestmark = pytest.mark.django_db


def reader(role: Role, *namespaces: str) -> Client:
    token = create_token(f"{role}", TokenGrant(role, namespaces or None), by=SYSTEM)
    return Client(headers={"host": "localhost", "authorization": f"Bearer {token}"})


@pytest.fixture(autouse=True)
def _entries() -> None:
    record(SYSTEM, Action("gpu.cordon", "gpu", "GPU-1", after={"cordoned": True}))
    record(SYSTEM, Action("pod.evict", "pod", "a", "team-a"), outcome=Outcome.FAILED, detail="=1")


def results(client: Client, query: str = "") -> list[dict]:
    answer = client.get(f"/api/v1/audit?{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()["results"]


def test_admins_read_it_newest_first_and_nobody_else_does() -> None:
    found = results(reader(Role.ADMIN))
    assert [row["verb"] for row in found] == ["token.create", "pod.evict", "gpu.cordon"]
    assert found[2]["after"] == {"cordoned": True}
    for role in (Role.VIEWER, Role.OPERATOR):
        answer = reader(role).get("/api/v1/audit")
        assert (answer.status_code, answer.json()["code"]) == (403, "request.forbidden")


@pytest.mark.parametrize(
    ("query", "verbs"),
    [
        ("verb=gpu.cordon", ["gpu.cordon"]),
        ("outcome=failed", ["pod.evict"]),
        ("kind__in=gpu,pod", ["pod.evict", "gpu.cordon"]),
        ("namespace=team-a", ["pod.evict"]),
        ("at__gte=2100-01-01T00:00:00Z", []),
        ("ordering=verb&limit=1", ["gpu.cordon"]),
    ],
)
def test_entries_are_found_by_what_they_hold(query: str, verbs: list[str]) -> None:
    assert [row["verb"] for row in results(reader(Role.ADMIN), query)] == verbs


def test_it_is_also_a_file_that_no_spreadsheet_runs() -> None:
    answer = reader(Role.ADMIN).get("/api/v1/audit?format=csv")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert [row["detail"] for row in rows if row["verb"] == "pod.evict"] == ["'=1"]
    shown = [row["after"] for row in rows if row["verb"] == "gpu.cordon"]
    assert [json.loads(text) for text in shown] == [{"cordoned": True}]


def test_an_admin_of_some_namespaces_reads_of_no_others() -> None:
    assert "pod.evict" not in {row["verb"] for row in results(reader(Role.ADMIN, "team-b"))}


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_it_cannot_be_written(method: str) -> None:
    answer = getattr(reader(Role.ADMIN), method)("/api/v1/audit", content_type="application/json")
    assert answer.status_code == 405
