"""The audit log on a page, for admins."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection
from django.test import Client

from hami_web.access.audit import SYSTEM, Action, record

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("live")]


@pytest.fixture(autouse=True)
def _admin(settings) -> None:
    settings.ANONYMOUS_ROLE = "admin"


def test_entries_are_listed_and_can_be_narrowed(client: Client) -> None:
    record(SYSTEM, Action("gpu.cordon", "gpu", "GPU-1", before={"cordoned": False}))
    record(SYSTEM, Action("token.create", "token", "ci<b>"))
    page = client.get("/audit").content.decode()
    assert "GPU-1" in page
    assert "ci&lt;b&gt;" in page
    narrowed = client.get("/audit?verb=gpu.cordon").content.decode()
    assert "GPU-1" in narrowed
    assert "token.create" not in narrowed
    assert "No such entry" in client.get("/audit?actor=nobody").content.decode()


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_only_admins_see_it_or_a_link_to_it(client: Client, settings, role: str) -> None:
    settings.ANONYMOUS_ROLE = role
    assert client.get("/audit").status_code in (302, 403)
    assert 'href="/audit"' not in client.get("/").content.decode()
    settings.ANONYMOUS_ROLE = "admin"
    assert 'href="/audit"' in client.get("/").content.decode()


def test_a_filter_that_no_row_can_have_is_refused(client: Client) -> None:
    assert client.get("/audit", {"actor": "x" * 151}).status_code == 400


def test_without_the_database_the_page_says_so(client: Client) -> None:
    def broken(*_: object) -> None:
        raise DatabaseError("gone")

    with connection.execute_wrapper(lambda *_: broken()):
        assert client.get("/audit").status_code == 503


def test_every_page_has_a_box_for_what_if(client: Client) -> None:
    for path in ("/", "/fragmentation", "/alerts", "/audit"):
        page = client.get(path).content.decode()
        assert page.count('<form class="ask" method="get" action="/what-if"') == 1, path
