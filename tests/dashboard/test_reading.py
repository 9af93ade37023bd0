"""Pages for those who read without scripts, without motion, or without a mouse."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from hami_web.dashboard.cells import CellState

from .given import GivenMap
from .samples import cell
from .test_browser import MOVING, browser, show, site  # noqa: F401  # fixtures
from .test_every_page import (
    _cluster,  # noqa: F401  # fixture
    _rows_beside_the_browser,  # noqa: F401  # fixture
    pytestmark,
)

pytestmark = [*pytestmark]


@pytest.fixture(params=[True, False], ids=["still", "moving"])
def page(browser: Browser, site: str, request) -> Iterator[Page]:  # noqa: F811
    motion = "reduce" if request.param else "no-preference"
    context = browser.new_context(base_url=site, locale="en", reduced_motion=motion)
    page = context.new_page()
    page.set_default_timeout(20_000)
    yield page
    context.close()


def test_what_changes_is_lit_up_only_for_those_who_want_motion(
    page: Page, live: GivenMap, request
) -> None:
    show(live)
    page.goto("/")
    expect(page.locator("#link")).to_have_text("live")
    show(live, cell(0, 1, CellState.BOUND, "1g.5gb", "team/new-pod"))
    row = page.locator(f"#gpu-{MOVING}")
    expect(row).to_have_class("gpu changed")
    moving = "moving" in request.node.callspec.id
    assert row.evaluate("row => getComputedStyle(row).animationName") == (
        "changed" if moving else "none"
    )


@pytest.mark.parametrize("page", [True], ids=["still"], indirect=True)
def test_the_map_can_be_walked_by_keyboard_and_shows_where_one_is(page: Page) -> None:
    page.goto("/")
    cells = page.locator("svg.memory").first.locator("a.cell")
    below = page.locator("svg.memory").nth(1).locator("a.cell")
    for _ in range(80):
        page.keyboard.press("Tab")
        if is_focused(cells.first):
            break
    expect(cells.first).to_be_focused()
    assert (
        cells.first.locator(".ground").evaluate("ground => getComputedStyle(ground).strokeWidth")
        == "3px"
    )
    for key, where in (
        ("ArrowRight", cells.nth(1)), ("ArrowDown", below.first), ("ArrowUp", cells.first),
        ("ArrowUp", cells.first), ("ArrowLeft", cells.first),
    ):  # fmt: skip
        page.keyboard.press(key)
        expect(where).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/?view=table#*")


@pytest.mark.parametrize("page", [True], ids=["still"], indirect=True)
@pytest.mark.parametrize("path", ["/", "/namespaces", "/what-if", "/audit"])
def test_a_slash_leads_to_the_search_and_is_not_typed(page: Page, path: str) -> None:
    page.goto(path)
    page.keyboard.press("/")
    search = page.locator("[data-key='/']").first
    expect(search).to_be_focused()
    page.keyboard.type("a/b")
    expect(search).to_have_value("a/b")
    outline = search.evaluate("field => getComputedStyle(field).outlineStyle")
    assert outline == "solid"


def is_focused(locator: Locator) -> bool:
    return bool(locator.evaluate("element => element === document.activeElement"))
