"""Requests of the web role are timed by address pattern."""

from __future__ import annotations

import asyncio

import pytest
from django.test import AsyncClient, Client

from hami_web.metrics import requests
from hami_web.metrics.requests import Requests


@pytest.fixture
def counted(monkeypatch):
    """The requests of one test, by labels."""
    noted = Requests()
    monkeypatch.setattr(requests, "REQUESTS", noted)

    def counts():
        [family] = noted.collect()
        return {labels: sum(found.counts) for labels, found in family.durations}

    return counts


def test_answers_count_by_method_pattern_and_class_of_status(counted):
    client = Client(headers={"host": "localhost"})
    for uuid in ("GPU-1", "GPU-2"):
        client.get(f"/api/v1/gpus/{uuid}/map")
    client.get("/healthz")
    client.post("/healthz")
    assert counted() == {
        ("GET", "api/v1/gpus/<str:uuid>/map", "4xx"): 2,
        ("GET", "healthz", "2xx"): 1,
        ("POST", "healthz", "4xx"): 1,
    }


def test_what_callers_invent_makes_no_series_of_its_own(counted):
    client = Client(headers={"host": "localhost"})
    for number in range(3):
        client.get(f"/no/such/{number}")
        client.generic(f"VERB{number}", "/healthz")
    assert counted() == {("GET", "other", "4xx"): 3, ("other", "healthz", "4xx"): 3}


def test_asynchronous_requests_are_timed_too(counted):
    asyncio.run(AsyncClient(headers={"host": "localhost"}).get("/healthz"))
    assert counted() == {("GET", "healthz", "2xx"): 1}
