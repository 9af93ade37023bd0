"""Lines of the control plane: one JSON object each, with the id of the request that is answered."""

from __future__ import annotations

import http.client
import json
import logging
import os
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from hami_web.access.middleware import RequestIdentity
from hami_web.logs import JsonFormatter, TextFormatter, answering, role_of
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig

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


def test_a_real_web_role_tells_the_id_of_each_refused_request(tmp_path: Path) -> None:
    with SimulatedApiServer() as server, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        log = tmp_path / "log"
        environment = {
            **os.environ,
            "HAMI_KUBECONFIG": str(write_kubeconfig(tmp_path / "kubeconfig", server=server.url)),
            "HAMI_DATA_DIR": str(tmp_path),  # without tables: no session can be read
            "HAMI_DATABASE_URL": f"sqlite:///{tmp_path}/none.sqlite3",
            "HAMI_LOG_FORMAT": "json",
            "HAMI_ANONYMOUS_ROLE": "viewer",
            "DJANGO_SETTINGS_MODULE": "hami_web.settings",
        }
        command = [sys.executable, str(ROOT / "manage.py"), "web", "--listen", f"127.0.0.1:{port}"]
        with log.open("wb") as file:
            process = subprocess.Popen(command, env=environment, stderr=file)
        try:
            unreadable = answered(port, "/alerts")
            refused = answered(port, "/nowhere-to-be-found")
        finally:
            process.terminate()
            process.wait(20)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    told = {line["message"]: line["request_id"] for line in lines if "request_id" in line}
    assert told == {
        "Internal Server Error: /alerts": unreadable,
        "Not Found: /nowhere-to-be-found": refused,
    }


def answered(port: int, path: str) -> str:
    """The id of a request that some answer came to."""
    deadline = time.monotonic() + 60
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request("GET", path)
            return str(connection.getresponse().headers["X-Request-Id"])
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        finally:
            connection.close()
