"""Spans: off they cost and load nothing, on they reach a collector or are lost without a wait."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from hami_web.access.middleware import RequestIdentity
from hami_web.celery import app
from hami_web.core.log_lines import about
from hami_web.core.otlp import QUEUE_MOST, Exporter
from hami_web.core.tracing import Span, annotate, is_endpoint, span, trace_of_pod, trace_to
from tests.observability.collector import collecting

UID = "0f3c2a1e-8a4b-4c1d-9e2f-112233445566"
TRACEPARENT = f"00-{'a' * 32}-{'b' * 16}-01"


@pytest.fixture
def spans() -> Iterator[list[Span]]:
    found: list[Span] = []
    trace_to(found.append)
    yield found
    trace_to(None)


def test_off_nothing_is_loaded_and_nothing_noted() -> None:
    code = (
        "import sys, hami_web.core.tracing as t\n"
        "t.export_to('', 'web')\n"
        "with t.span('a') as made: assert made is None\n"
        "assert not {'hami_web.core.otlp', 'urllib.request'} & sys.modules.keys()"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-S", "-c", code], check=True, cwd=root, timeout=60)


def test_a_span_about_a_pod_is_in_the_trace_of_its_uid_and_inner_ones_are_its_parts(spans) -> None:
    with about(pod="a/b", pod_uid=UID), span("outer", gpu="G"), span("inner"):
        annotate(outcome="held")
    inner, outer = spans
    assert inner.trace_id == outer.trace_id == UID.replace("-", "") == trace_of_pod(UID)
    assert (inner.parent_id, outer.parent_id) == (outer.span_id, "")
    assert outer.attributes == {"hami.pod": "a/b", "gpu": "G"}
    assert inner.attributes["outcome"] == "held"
    assert outer.began_ns <= inner.began_ns < inner.ended_ns
    assert outer.began_ns < outer.ended_ns
    assert len(trace_of_pod("no uuid")) == 32


def test_a_failure_ends_its_span_with_the_reason(spans) -> None:
    with pytest.raises(ValueError, match="why"), span("fails"):
        raise ValueError("why")
    assert spans[0].error == "why"


@pytest.mark.parametrize("trusted", [True, False])
def test_a_web_request_follows_a_traceparent_from_an_allowed_proxy_alone(
    spans, settings, trusted
) -> None:
    settings.PROXY_ADDRESSES = (ip_network("127.0.0.0/8"),) if trusted else ()
    request = RequestFactory().get("/x", headers={"Traceparent": TRACEPARENT})
    RequestIdentity(lambda _request: HttpResponse())(request)
    assert spans[0].name == "GET web"
    assert (spans[0].trace_id == "a" * 32) is trusted
    assert spans[0].parent_id == ("b" * 16 if trusted else "")


def test_a_task_is_a_span(spans) -> None:
    @app.task(name="test.work")
    def work() -> None:
        pass

    try:
        work.apply()
    finally:
        app.tasks.pop("test.work")
    assert [made.name for made in spans] == ["test.work"]


def test_spans_reach_a_collector_and_what_it_refuses_is_counted() -> None:
    with collecting() as collector:
        exporter = Exporter(collector.url, {"service.name": "hami-test"})
        trace_to(exporter.add)
        try:
            with about(pod_uid=UID), span("kept"):
                pass
            exporter.flush()
            assert collector.of(trace_of_pod(UID), "hami-test") == {"kept"}
            collector.refuses = True
            with span("refused"):
                pass
            exporter.flush()
        finally:
            trace_to(None)
        assert collector.names() == {"kept"}
        assert exporter.lost == 1


def test_a_full_queue_loses_spans_and_never_waits() -> None:
    exporter = Exporter("http://192.0.2.1:9", {})
    made = Span("x", "0" * 32, "", 0, {})
    with exporter._sending:  # nobody sends meanwhile
        for _ in range(QUEUE_MOST + 10):
            exporter.add(made)
        assert exporter.lost == 10
        exporter._spans.clear()


@pytest.mark.parametrize(
    ("text", "taken"),
    [("http://otel:4318", True), ("https://otel", True), ("otel:4318", False), ("grpc://o", False)],
)
def test_an_endpoint_is_an_address_of_http(text: str, taken: bool) -> None:
    assert is_endpoint(text) is taken
