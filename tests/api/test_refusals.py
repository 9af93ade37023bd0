"""What the REST API refuses, and how it says so."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.test import Client

from hami_web.access.models import ApiToken
from hami_web.api.codes import KINDS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("mirror")]


@pytest.mark.parametrize(
    ("query", "field", "allowed"),
    [
        ("limit=0", "limit", "1…500"),
        ("limit=501", "limit", "1…500"),
        ("limit=²", "limit", "1…500"),
        ("offset=-1", "offset", "0…"),
        ("ordering=secret", "ordering", "reserved_at"),
        ("fields=pod,nothing", "fields", "pod"),
        ("phase=gone", "phase", "realized"),
        ("live=maybe", "live", "true, false"),
        ("at=yesterday", "at", "ISO 8601"),
        ("at=2026-01-01T00:00:00", "at", "zone"),
        ("at=0001-01-01T00:00:00%2B23:59", "at", "ISO 8601"),
        ("pod=%00", "pod", "NUL"),
        ("pod=", "pod", "characters"),
        ("pod=a&pod=b", "pod", "once"),
        ("nonsense=1", "nonsense", "parameters"),
    ],
)
def test_a_parameter_without_sense_is_400_with_field_and_allowed(
    client: Client, query, field, allowed
) -> None:
    answer = client.get(f"/api/v1/reservations?{query}")
    problem = answer.json()
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    assert (problem["code"], problem["errors"][0]["field"]) == ("request.parameter.invalid", field)
    assert allowed in problem["errors"][0]["allowed"]


def test_a_problem_is_json_even_where_csv_was_asked_for(client: Client) -> None:
    answer = client.get("/api/v1/reservations?format=csv&limit=0")
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["status"] == 400


@pytest.mark.parametrize(
    "query",
    ["", "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
     "from=2020-01-01T00:00:00Z&to=2026-01-01T00:00:00Z"],
)  # fmt: skip
def test_usage_wants_a_range(client: Client, query) -> None:
    assert client.get(f"/api/v1/usage?{query}").status_code == 400


def test_an_unknown_gpu_is_404_and_a_write_405(client: Client) -> None:
    for answer, status, code in (
        (client.get("/api/v1/gpus/GPU-none/map"), 404, "request.not_found"),
        (client.post("/api/v1/gpus"), 405, "request.method_not_allowed"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (status, code)


@pytest.mark.parametrize("header", ["", "Bearer hami_wrong", "Basic eA==", "Bearer \u00e9"])
def test_without_a_valid_token_nothing_is_read(anonymous: Client, header: str) -> None:
    answer = anonymous.get("/api/v1/nodes", headers={"authorization": header} if header else {})
    assert (answer.status_code, answer.json()["code"]) == (401, "request.unauthenticated")
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_a_database_that_fails_is_503(client: Client) -> None:
    def fail(*_arguments: object) -> None:
        raise OperationalError("no such table")

    with connection.execute_wrapper(fail):
        answer = client.get("/api/v1/nodes")
    assert (answer.status_code, answer.json()["code"]) == (503, "mirror.unavailable")


def test_an_expired_token_is_refused(client: Client) -> None:
    assert client.get("/api/v1/nodes").status_code == 200
    ApiToken.objects.update(expires_at=datetime(2026, 1, 1, tzinfo=UTC))
    assert client.get("/api/v1/nodes").status_code == 401


def test_the_command_makes_a_token_once_and_revokes_it(capsys, anonymous: Client) -> None:
    call_command("api_token", "ci")
    token = capsys.readouterr().out.strip()
    assert token not in str(list(ApiToken.objects.values()))
    headers = {"authorization": f"Bearer {token}"}
    assert anonymous.get("/api/v1/nodes", headers=headers).status_code == 200
    with pytest.raises(CommandError, match="taken"):
        call_command("api_token", "ci")
    call_command("api_token", "ci", revoke=True)
    assert anonymous.get("/api/v1/nodes", headers=headers).status_code == 401


def test_schema_and_documents_come_from_this_server_alone(anonymous: Client) -> None:
    schema = anonymous.get("/api/schema/?format=json").json()
    assert schema["openapi"] == "3.1.0"
    assert "/api/v1/reservations" in schema["paths"]
    page = anonymous.get("/api/docs/")
    assert page.status_code == 200
    assert b"//cdn" not in page.content
    assert b"https://" not in page.content


def test_a_problem_names_its_request_as_the_header_does(client: Client) -> None:
    answer = client.get("/api/v1/nodes?limit=0")
    assert answer.json()["request_id"] == answer["X-Request-Id"] != ""


def test_titles_are_told_in_the_callers_language_and_codes_never_change(client: Client) -> None:
    english = client.get("/api/v1/nodes?limit=0").json()
    chinese = client.get("/api/v1/nodes?limit=0", headers={"accept-language": "zh-CN"}).json()
    assert (english["title"], chinese["title"]) == ("A parameter is not allowed", "参数不被允许")
    assert english["code"] == chinese["code"]
    assert english["type"] == chinese["type"] == "urn:hami:problem:request.parameter.invalid"


def test_the_documents_list_every_code_with_its_status() -> None:
    text = (Path(__file__).parents[2] / "docs/api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([a-z._]+)` \| (\d{3}) \|", text, re.MULTILINE)
    assert sorted(listed) == sorted((kind.code, str(kind.status)) for kind in KINDS)
