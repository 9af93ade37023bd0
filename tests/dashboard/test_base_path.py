"""Below which path the dashboard is: how it is given, and what requests are made of."""

from __future__ import annotations

import asyncio

import pytest
from django.core.exceptions import ImproperlyConfigured

from hami_web import environment
from hami_web.access.checks import check_base_path
from hami_web.dashboard.sub_path import SubPath


@pytest.mark.parametrize(
    ("asked", "given"),
    [("/a/b", "/a/b"), ("/a/b/", "/a/b/"), ("/a/b/c", "/a/b/c"), ("/c", "/a/b/c"),
     ("/a/bc", "/a/b/a/bc"), ("/", "/a/b/")],
)  # fmt: skip
def test_a_path_with_and_without_the_base_means_the_same(asked: str, given: str) -> None:
    seen: list[str] = []

    async def application(scope, _receive, _send) -> None:
        seen.append(scope["path"])

    asyncio.run(SubPath(application, "/a/b")({"type": "http", "path": asked}, None, None))
    asyncio.run(SubPath(application, "")({"type": "http", "path": asked}, None, None))
    assert seen == [given, asked]


@pytest.mark.parametrize("text", ["tools", "//tools", "/a b", "/..", "/a//b", "/.a", "/a?b"])
def test_what_is_no_path_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("HAMI_BASE_PATH", text)
    with pytest.raises(ImproperlyConfigured, match=r"HAMI_BASE_PATH.*allowed: empty, or /NAME"):
        environment.sub_path("HAMI_BASE_PATH")


@pytest.mark.parametrize(("base", "found"), [("/api/gpus", 1), ("/history", 1), ("/gpu", 0)])
def test_a_base_like_an_address_of_ours_is_an_error(settings, base: str, found: int) -> None:
    settings.BASE_PATH = base
    assert [each.id for each in check_base_path()] == ["hami.E014"] * found
