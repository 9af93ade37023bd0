"""Lines of the control plane: one JSON object each, with the id of the request that is answered."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from hami_web.access.middleware import RequestIdentity
from hami_web.logs import JsonFormatter, TextFormatter, answering, role_of

ROOT = Path(__file__).parents[2]


def record(message: str, **fields: object) -> logging.LogRecord:
    return logging.getLogger("hami.test").makeRecord(
        "hami.test", logging.WARNING, __file__, 1, message, (), None, extra=fields
    )


def entry(made: logging.LogRecord) -> dict[str, str]:
    line = JsonFormatter("web").format(made)
    assert "\n" not in line
    return json.loads(line)


def test_a_line_has_time_in_utc_level_role_logger_message_and_fields():
    found = entry(record("two\nlines", pod="a/b", level="forged"))
    assert datetime.fromisoformat(found["time"]).tzinfo == UTC
    expected = {"level": "warning", "role": "web", "logger": "hami.test", "pod": "a/b"}
    assert expected.items() <= found.items()
    assert found["message"] == "two\nlines"


def test_a_traceback_stays_in_its_line():
    made = record("failed", color_message="x")
    try:
        int("why")
    except ValueError:
        made.exc_info = sys.exc_info()
    assert "color_message" not in entry(made)
    assert entry(made)["exception"].endswith("with base 10: 'why'")
    assert TextFormatter("%(message)s").format(made).startswith("failed\nTraceback")


def test_a_request_that_django_hands_over_is_not_logged():
    request = RequestFactory().get("/", headers={"Authorization": "Bearer secret"})
    assert "request" not in entry(record("refused", request=request, status_code=403))


def test_lines_carry_the_id_of_the_request_that_is_answered_and_no_other():
    seen: list[str] = []

    def view(_request):
        seen.append(entry(record("inside"))["request_id"])
        seen.append(TextFormatter("%(message)s").format(record("inside")))
        return HttpResponse()

    response = RequestIdentity(view)(RequestFactory().get("/"))
    given = response.headers["X-Request-Id"]
    assert seen == [given, f"inside request_id={given}"]
    assert "request_id" not in entry(record("outside"))


def test_the_id_goes_when_a_view_fails():
    with pytest.raises(ValueError, match="broken"), answering("abc"):
        raise ValueError("broken")
    assert "request_id" not in entry(record("outside"))


@pytest.mark.parametrize(
    ("line", "role"),
    [
        ("manage.py web --listen :1", "web"),
        ("hami-web extender", "extender"),
        ("celery -A hami_web.celery worker", "worker"),
        ("manage.py migrate", "command"),
    ],
)
def test_the_role_is_told_by_the_command_line(line, role):
    assert role_of(line.split()) == role


def test_an_extender_that_cannot_listen_says_so_in_json_alone(tmp_path):
    environment = os.environ | {
        "HAMI_LOG_FORMAT": "json",
        "HAMI_DATA_DIR": str(tmp_path),
        "HAMI_ROLE": "EXTENDER",
        "DJANGO_SETTINGS_MODULE": "hami_web.settings",
    }
    code = (
        "import sys; sys.argv = ['manage.py', 'extender'];"
        "import django; django.setup();"
        "from hami_web.extender.server import ExtenderServer, ServerOptions;"
        "ExtenderServer(ServerOptions('192.0.2.1:9', 1)).run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        cwd=ROOT,
    )
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.returncode != 0
    assert any(line["logger"] == "gunicorn.error" for line in lines)
    assert {line["role"] for line in lines} == {"extender"}
