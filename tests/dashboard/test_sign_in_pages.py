"""Signing in, being refused and being denied, as people see it: languages, themes, widths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from .deployed import BASE, PASSWORD
from .proxy import ReverseProxy
from .test_axe import RULES
from .test_browser import browser, pytestmark  # noqa: F401  # fixture and conditions
from .test_every_page import OUTLINE

pytestmark = [*pytestmark, pytest.mark.timeout(240)]  # the first starts two processes
WAYS = [("en", "light", 1440), ("zh-CN", "dark", 390)]
IDS = ["-".join(map(str, way)) for way in WAYS]
NAMES = dict(zip(IDS, ("ann", "ben"), strict=True))
one_way = pytest.mark.parametrize("page", WAYS[:1], ids=IDS[:1], indirect=True)
other_way = pytest.mark.parametrize("page", WAYS[1:], ids=IDS[1:], indirect=True)


@pytest.fixture(params=WAYS, ids=IDS)
def page(browser: Browser, port: int, tls_file: Path, request) -> Iterator[Page]:  # noqa: F811
    """A browser of someone with an address of their own: failures are counted by that too."""
    language, scheme, width = request.param
    own = WAYS.index(request.param) + 1
    with ReverseProxy(port, BASE, tls_file, takes_base_away=True, client=own) as proxy:
        context = browser.new_context(
            base_url=f"https://localhost:{proxy.port}", locale=language, color_scheme=scheme,
            viewport={"width": width, "height": 900}, ignore_https_errors=True,
        )  # fmt: skip
        page = context.new_page()
        page.set_default_timeout(20_000)
        yield page
        context.close()


@pytest.fixture
def name(request) -> str:
    return next(name for way, name in NAMES.items() if way in request.node.name)


def send(page: Page, name: str, password: str) -> None:
    page.locator("[name=username]").fill(name)
    page.locator("[name=password]").fill(password)
    with page.expect_navigation():
        page.locator("form:has([name=password]) button").click()


def told_well(page: Page) -> None:
    """It fits, has one heading in the page's language, and nothing that axe finds."""
    assert page.evaluate(OUTLINE) == {"spill": 0, "headings": 1, "unnamed": [], "doubled": []}
    found = Axe().run(page, options=RULES).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []
    chinese = page.evaluate("document.documentElement.lang") == "zh-hans"
    for text in (page.title(), page.locator("h1").inner_text()):
        assert bool(re.search("[\u4e00-\u9fff]", text)) is chinese, text


def test_the_way_from_a_refusal_to_a_page_and_out_again(page: Page, name: str) -> None:
    page.goto(f"{BASE}/alerts")
    page.wait_for_url("**/login?next=%2Ftools%2Fgpus%2Falerts")
    told_well(page)
    send(page, name, "wrong")
    expect(page.get_by_role("alert")).to_be_visible()
    told_well(page)
    send(page, name, PASSWORD)
    page.wait_for_url("**/alerts")
    expect(page.locator("header .who")).to_contain_text(name)
    for denied in ("/audit", "/namespaces/other", "/pods/other/none"):
        answer = page.goto(f"{BASE}{denied}")
        assert answer is not None
        assert answer.status == 403
        told_well(page)
    page.locator(f"a[href='{BASE}/']").click()
    page.locator("header form.who button").click()
    page.wait_for_url("**/login")
    page.goto(f"{BASE}/")
    page.wait_for_url("**/login?next=%2Ftools%2Fgpus%2F")


@other_way
def test_too_many_failures_are_told_with_the_time_to_wait(page: Page, name: str) -> None:
    page.goto(f"{BASE}/login")
    for _ in range(6):
        send(page, f"someone beside {name}", "wrong")
    text = page.get_by_role("alert").inner_text()
    assert re.search(r"\d+ ?(seconds?|秒)", text), text
    told_well(page)


@one_way
def test_a_form_that_is_too_old_is_told_and_leads_back(page: Page) -> None:
    page.goto(f"{BASE}/login")
    page.context.clear_cookies()
    send(page, "eve", PASSWORD)
    expect(page.locator("h1")).to_have_text("Not allowed")
    told_well(page)


@one_way
def test_an_open_page_leads_to_the_sign_in_after_a_sign_out_elsewhere(page: Page) -> None:
    page.goto(f"{BASE}/login")
    send(page, "eve", PASSWORD)
    expect(page.locator("#link")).to_have_text("live")
    other = page.context.new_page()
    other.goto(f"{BASE}/")
    other.locator("header form.who button").click()
    other.wait_for_url("**/login")
    # As when the connection of its stream breaks: what it fetches next is refused.
    page.evaluate("import(document.querySelector('script[type=module]').src + '?again')")
    page.wait_for_url("**/login?next=%2Ftools%2Fgpus%2F", timeout=30_000)
