"""Every page in a real browser: both languages, both themes, wide and narrow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import resolve, reverse
from django.utils import timezone
from playwright.sync_api import Browser, Page

from hami_web.dashboard.cluster_map import ClusterMap, WaitingPod
from hami_web.history.conditions import AlertCode
from hami_web.history.models import Alert, Sample
from hami_web.migration.models import Finding, MigrationRun, NodeReadiness

from .addresses import SENT_TO, page_names
from .given import GivenMap
from .handovers import under_way
from .test_browser import browser, pytestmark, site  # noqa: F401  # fixtures and conditions
from .test_drawing import GPU, IDENTITY, drawn, node, pod

# Many pages each: more time than one test has on a busy machine.
pytestmark = [*pytestmark, pytest.mark.django_db(transaction=True), pytest.mark.timeout(240)]
PATHS = {
    "/": "map", "/?view=table": "table", "/?density=dense&group=model": "dense map",
    "/fragmentation": "fragmentation", "/what-if": "empty question",
    "/what-if?wish=3g.20gb+x3": "answer", "/what-if?wish=none": "refused question",
    "/namespaces": "namespaces", "/namespaces/team?days=30": "namespace",
    "/drain-plan?profile=3g.20gb&count=3": "plan", "/history": "past", "/alerts": "alerts",
    "/drift": "drift", "/audit": "audit log", "/nodes/n1": "node", f"/gpus/{GPU}": "GPU",
    "/setup": "setup", "/settings": "settings", "/about": "about", "/pods/team/waits": "Pod",
    "/pods/team/none": "not found", "/migration": "moving in", "/migration/1": "check",
    "/migration/converter": "converter", "/migration/nodes/1": "take-over", "/login": "sign-in",
}  # fmt: skip
WAYS = [("en", "light", 1440), ("zh-CN", "dark", 768), ("en", "dark", 390), ("zh-CN", "light", 390)]
# What changes from one moment to the next, and buttons that need a script.
COPY = re.compile(r"\s*\bCopy\b")
PASSING = re.compile(r"\d\d:\d\d(:\d\d)?|\d+(\.\d+)?\s(s|min)\b")
ARGUMENTS = {
    "uuid": ("cordon",),
    "pk": ("acknowledge", "-cancel", "r-approve", "r-withdraw", "-back", "r-close"),
}
OUTLINE = """() => ({
  spill: document.documentElement.scrollWidth - innerWidth,
  headings: document.querySelectorAll('h1').length,
  unnamed: [...document.querySelectorAll('a, button, input:not([type=hidden]), select')].filter(
    e => e.checkVisibility() && !(e.textContent.trim() || e.getAttribute('aria-label') ||
      e.labels?.length || e.title)).map(e => e.outerHTML.slice(0, 120)),
  doubled: [...document.querySelectorAll('[id]')].map(e => e.id)
    .filter((id, at, all) => all.indexOf(id) !== at),
})"""


@pytest.fixture(scope="module", autouse=True)
def _rows_beside_the_browser() -> Iterator[None]:
    """Playwright's loop runs in this thread; the rows of a test may be written all the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        yield


@pytest.fixture(autouse=True)
def _cluster(live: GivenMap, settings) -> None:
    settings.ANONYMOUS_ROLE = "admin"
    known = drawn([node()], [pod("a", 0, 1, IDENTITY), pod("b", 4, 1)])
    waiting = (WaitingPod("team/waits", "0/1 nodes are available"),)
    live.show(ClusterMap(2, known.nodes, waiting, known.records))
    now = timezone.now()
    Alert.objects.create(
        code=AlertCode.AGENT_STALE, subject="n1", text="silent", raised_at=now, seen_at=now
    )
    run = MigrationRun.objects.create(
        pk=1, state="finished", requested_at=now, requested_by="ann", finished_at=now
    )
    NodeReadiness.objects.create(run=run, node="n1", readiness="not_ready", checked_at=now)
    Finding.objects.create(
        run=run, node="n1", severity="blocker", code="MigConfigLabel", subject="Node n1",
        evidence="label nvidia.com/mig.config=all-1g.5gb",
    )  # fmt: skip
    under_way(now)
    Sample.objects.create(
        at=now - timedelta(hours=1), gpus=2, memory_slices=16, reserved_memory_slices=2,
        realized_memory_slices=1, blocked_memory_slices=0, fragmentation=0.4,
    )  # fmt: skip


@pytest.fixture(params=WAYS, ids=["-".join(map(str, way)) for way in WAYS])
def page(browser: Browser, site: str, request) -> Iterator[Page]:  # noqa: F811
    language, scheme, width = request.param
    context = browser.new_context(
        base_url=site, locale=language, color_scheme=scheme, reduced_motion="reduce",
        viewport={"width": width, "height": 900},
    )  # fmt: skip
    page = context.new_page()
    page.set_default_timeout(20_000)
    yield page
    context.close()


@pytest.fixture
def plain(browser: Browser, site: str, page: Page, request) -> Iterator[Page | None]:  # noqa: F811
    """A browser without scripts beside the first of the others, the one that reads English."""
    if request.node.callspec.params["page"] != WAYS[0]:
        yield None
        return
    context = browser.new_context(
        base_url=site, locale="en", java_script_enabled=False, viewport=page.viewport_size
    )
    yield context.new_page()
    context.close()


def told(page: Page) -> str:
    """What a page tells, apart from what passes."""
    text = COPY.sub("", " ".join(page.locator("main").inner_text().split()))
    return PASSING.sub("#", text)


def test_every_page_fits_keeps_to_its_origin_names_its_controls_and_tells_all_without_scripts(
    page: Page,
    plain: Page | None,
    site: str,  # noqa: F811
) -> None:
    complaints: list[str] = []
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text))
    for path, name in PATHS.items():
        response = page.goto(path)
        assert response is not None
        outline = page.evaluate(OUTLINE)
        assert outline == {"spill": 0, "headings": 1, "unnamed": [], "doubled": []}, name
        if plain:
            plain.goto(path)
            assert told(plain) == told(page), name
    # A page that is not found or refused is a complaint of the browser's, and no other is.
    assert [text for text in complaints if "status of 40" not in text] == []
    assert len(asked) > 2 * len(PATHS)
    assert [url for url in asked if not url.startswith(f"{site}/")] == []


def test_every_page_of_the_table_of_addresses_is_tried_here() -> None:
    tried = {resolve(path.partition("?")[0]).view_name for path in PATHS}
    assert tried == {*page_names()} - {"dashboard:document"}  # which is no page but text


def test_what_forms_send_to_cannot_be_read(client: Client) -> None:
    for name in SENT_TO:
        kinds = {"uuid": GPU, "pk": 1}
        arguments = {key: kinds[key] for key in kinds if name.endswith(ARGUMENTS.get(key, "-"))}
        assert client.get(reverse(name, kwargs=arguments)).status_code == 405, name


def test_a_page_in_chinese_has_a_chinese_title(browser: Browser, site: str) -> None:  # noqa: F811
    context = browser.new_context(base_url=site, locale="zh-CN")
    page = context.new_page()
    for path in ("/fragmentation", "/what-if", "/drain-plan", "/history", "/alerts", "/drift"):
        page.goto(path)
        assert re.search("[\u4e00-\u9fff]", page.title()), path
    context.close()
