"""The page in a real browser: live, by keyboard, and on its own origin only."""

from __future__ import annotations

import re
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
import uvicorn
from django.core.asgi import get_asgi_application
from playwright.sync_api import Browser, Page, expect, sync_playwright

from hami_web.dashboard.cells import CellState
from hami_web.dashboard.cluster_map import ClusterMap, NodeBlock

from .given import GivenMap
from .samples import cell, cluster_map, row

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: chromium)"),
]
MOVING = "GPU-n-0-5f0c"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def site(live: GivenMap) -> Iterator[str]:
    config = uvicorn.Config(get_asgi_application(), lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    live.close()
    server.should_exit = True
    thread.join(10)
    listener.close()


@pytest.fixture
def page(browser: Browser, site: str) -> Iterator[Page]:
    context = browser.new_context(base_url=site, locale="en")
    page = context.new_page()
    page.set_default_timeout(20_000)
    yield page
    context.close()


def show(live: GivenMap, *cells) -> None:
    rows = (row("n", 0, cells), row("n", 1))
    version = live.current().version + 1
    live.show(ClusterMap(version, (NodeBlock("n", rows),)))


def test_a_change_is_seen_live_and_touches_only_its_gpu(page: Page, live: GivenMap) -> None:
    show(live)
    page.goto("/")
    expect(page.locator("#link")).to_have_text("live")
    page.evaluate("document.querySelectorAll('.gpu').forEach(gpu => gpu.dataset.old = 'yes')")
    began = time.monotonic()
    show(live, cell(0, 1, CellState.BOUND, "1g.5gb", "team/new-pod"))
    expect(page.locator("a.cell.bound")).to_be_visible()
    assert time.monotonic() - began < 5
    assert page.locator(f"#gpu-{MOVING}").get_attribute("data-old") is None
    assert page.locator(".gpu[data-old=yes]").count() == 1


def test_a_new_node_appears_live(page: Page, live: GivenMap) -> None:
    show(live)
    page.goto("/")
    expect(page.locator("#link")).to_have_text("live")
    live.show(cluster_map(version=live.current().version + 1))
    expect(page.locator("#node-gpu-a30-01")).to_be_visible()


def test_the_table_follows_too(page: Page, live: GivenMap) -> None:
    show(live)
    page.goto("/?view=table")
    expect(page.locator("#link")).to_have_text("live")
    show(live, cell(0, 1, CellState.REALIZED, "1g.5gb", "team/new-pod"))
    expect(page.locator("td", has_text="team/new-pod")).to_be_visible()


def test_data_that_becomes_old_raises_the_alarm(page: Page, live: GivenMap) -> None:
    page.goto("/")
    expect(page.locator("#link")).to_have_text("live")
    live.told = replace(live.told, age_s=400.0)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("[role=alert]")).to_contain_text("The picture is old", timeout=8000)
    expect(page.locator("#link")).to_have_text("out of date")


def test_no_request_leaves_the_origin_and_nothing_is_refused(page: Page, site: str) -> None:
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto("/")
    expect(page.locator("#link")).to_have_text("live")
    page.get_by_role("link", name="Table").click()
    page.wait_for_url("**/?view=table")
    assert requests
    assert [url for url in requests if not url.startswith(site)] == []
    assert complaints == []


def test_arrow_keys_move_between_the_cells_of_a_gpu(page: Page) -> None:
    page.goto("/")
    cells = page.locator("#gpu-GPU-gpu-a100-01-0-5f0c a.cell")
    cells.first.focus()
    page.keyboard.press("ArrowRight")
    expect(cells.nth(1)).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(cells.first).to_be_focused()


def test_a_cell_leads_to_its_line_of_the_table(page: Page) -> None:
    page.goto("/")
    page.locator("a.cell[data-pod='team-b/notebook-lin']").click()
    expect(page.locator("tr:target")).to_contain_text("team-b/notebook-lin")


def test_the_language_can_be_switched(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="简体中文").click()
    expect(page.locator("h1")).to_have_text("集群视图")


def test_reading_works_without_javascript(browser: Browser, site: str) -> None:
    context = browser.new_context(base_url=site, java_script_enabled=False, locale="en")
    page = context.new_page()
    page.goto("/")
    assert page.locator("a.cell").count() > 10
    page.get_by_role("link", name="Table").click()
    expect(page.locator("table")).to_be_visible()
    context.close()


def test_a_link_to_memory_slices_leads_to_their_cell(page: Page) -> None:
    page.goto("/#gpu-GPU-gpu-a100-01-0-5f0c-4:4")
    cell = page.locator("a.cell[data-pod='research/finetune-llama-7b-x2k4q']")
    expect(cell).to_be_focused()
    expect(cell).to_have_class(re.compile("sought"))


def test_a_change_needs_no_further_request(page: Page, live: GivenMap) -> None:
    show(live)
    page.goto("/")
    expect(page.locator("#link")).to_have_text("live")
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    show(live, cell(0, 1, CellState.BOUND, "1g.5gb", "team/new-pod"))
    expect(page.locator("a.cell.bound")).to_be_visible()
    assert [url for url in fetched if "/fragments/" in url] == []
