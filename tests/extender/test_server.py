"""The server's own behaviour: statuses, limits, readiness, latency, TLS files."""

from __future__ import annotations

import base64
import http.client
import json
import statistics
import subprocess
import sys
import time

import pytest

from hami_web.simulator.faults import RequestMatch
from tests.extender.conftest import ROOT, Extender
from tests.extender.samples import golden


def test_health_is_answered_and_nothing_is_decided_before_the_first_list(
    start_extender, api, cluster
):
    api.faults.answer(503, RequestMatch(verb="list"), times=None)
    extender = start_extender()
    deadline = time.monotonic() + 45
    while True:
        try:
            assert extender.call("GET", "/healthz") == (200, b"ok\n")
            break
        except (OSError, http.client.HTTPException):
            extender.connection.close()
            assert time.monotonic() < deadline
            time.sleep(0.05)
    status, text = extender.call("GET", "/readyz")
    assert (status, b"is not complete yet" in text) == (503, True)
    call = b'{"Pod":{"metadata":{"name":"p","uid":"u"}},"NodeNames":[]}'
    assert extender.call("POST", "/filter", call)[0] == 503
    assert (
        extender.call(
            "POST", "/bind", b'{"PodName":"p","PodNamespace":"d","PodUID":"u","Node":"n"}'
        )[0]
        == 503
    )
    api.faults.clear()
    extender.wait_ready()


def test_bad_bodies_are_answered_with_their_reason(extender):
    for path in ("/filter", "/bind", "/webhook"):
        assert extender.call("POST", path) == (400, b"Please send a request body\n")
        status, text = extender.call("POST", path, b'{"Pod": {')
        assert status == 400
        assert b"JSON" in text or b"AdmissionReview" in text


@pytest.mark.parametrize(
    ("body", "text"),
    [(b"{}", "Pod: missing"), (b'{"Pod":{"metadata":{"name":"p","uid":"u"}}}', "both missing")],
)
def test_an_incomplete_filter_is_answered_in_its_error_field(extender, body, text):
    status, answer = extender.call("POST", "/filter", body)
    assert status == 200
    assert text in answer.decode()


def test_methods_and_sizes_are_limited(extender):
    assert extender.call("GET", "/filter")[0] == 405
    assert extender.call("POST", "/healthz", b"{}")[0] == 405
    assert extender.call("GET", "/elsewhere")[0] == 404
    # The server closes after a body it did not read.
    status, text = extender.call("POST", "/bind", b" " * 70_000)
    assert (status, b"allowed: 65536" in text) == (413, True)


def test_the_connection_survives_an_error(extender):
    extender.call("POST", "/filter", b"{")
    assert extender.call("GET", "/healthz")[0] == 200


def test_a_kept_alive_call_has_no_delayed_acknowledgement(extender):
    body = b'{"Pod":{"metadata":{"name":"p","uid":"u"}},"NodeNames":["n1"]}'
    seconds = []
    for _ in range(50):
        began = time.perf_counter()
        assert extender.call("POST", "/filter", body)[0] == 200
        seconds.append(time.perf_counter() - began)
    assert statistics.median(seconds) < 0.02


def test_calls_of_several_clients_are_answered(extender):
    others = [Extender(extender.port) for _ in range(8)]
    for other in others:
        assert other.call("GET", "/readyz")[0] == 200
    for other in others:
        other.connection.close()


@pytest.mark.parametrize(
    ("variable", "value", "text"),
    [
        ("HAMI_EXTENDER_THREADS", "many", "HAMI_EXTENDER_THREADS: 'many' is not allowed"),
        ("HAMI_EXTENDER_TLS_CERT", "/absent", "both must name existing files"),
        ("HAMI_KUBECONFIG", "/absent", "HAMI_KUBECONFIG: Kubernetes configuration from /absent"),
        ("HAMI_LOG_LEVEL", "loud", "HAMI_LOG_LEVEL: 'loud' is not allowed"),
        ("HAMI_POLICY_FILE", "/absent.yaml", "HAMI_POLICY_FILE"),
    ],
)
def test_a_wrong_setting_is_named(variable, value, text):
    result = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "extender"],
        env={"PATH": "/usr/bin", variable: value},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert result.returncode != 0
    assert text in result.stderr


def test_a_review_is_answered_by_the_running_server(extender):
    sample = golden("admission-replicaset.json")
    response = extender.post("/webhook", sample["request"])["response"]
    assert json.loads(base64.b64decode(response["patch"])) == sample["patch"]
