"""Below a path of a host that it shares, behind a proxy where TLS ends: nothing leads outside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, StorageState, expect

from .deployed import BASE, PASSWORD
from .proxy import ReverseProxy
from .test_browser import browser, pytestmark  # noqa: F401  # fixture and conditions

pytestmark = [*pytestmark, pytest.mark.timeout(240)]  # the first starts two processes
LEADS = """() => [...document.querySelectorAll(
  'a[href], form, link[href], script[src], img[src], [data-events], [formaction]')].map(e =>
  new URL(e.getAttribute('href') ?? e.getAttribute('action') ?? e.getAttribute('src') ??
  e.getAttribute('formaction') ?? e.dataset.events ?? '', location.href).href)"""


@pytest.fixture(params=[False, True], ids=["keeps", "takes away"])
def proxy(request, port: int, tls_file: Path) -> Iterator[ReverseProxy]:
    """One that keeps the path, and one that takes it away before it passes a request on."""
    with ReverseProxy(port, BASE, tls_file, takes_base_away=request.param) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def session(browser: Browser, port: int, tls_file: Path) -> StorageState:  # noqa: F811
    """Cookies of an admin who signed in by the form; they hold for every port of the host."""
    with ReverseProxy(port, BASE, tls_file, takes_base_away=True) as proxy:
        context = opened(browser, proxy)
        page = context.new_page()
        page.goto(f"{BASE}/alerts")
        page.get_by_label("Name").fill("admin")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in", exact=True).click()
        page.wait_for_url(f"**{BASE}/alerts")
        state = context.storage_state()
        context.close()
    return state


def opened(
    browser: Browser,  # noqa: F811
    proxy: ReverseProxy,
    state: StorageState | None = None,
) -> BrowserContext:
    return browser.new_context(
        base_url=f"https://localhost:{proxy.port}", locale="en", ignore_https_errors=True,
        storage_state=state,
    )  # fmt: skip


@pytest.fixture
def context(
    browser: Browser,  # noqa: F811
    proxy: ReverseProxy,
    session: StorageState,
) -> Iterator[BrowserContext]:
    context = opened(browser, proxy, session)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    page = context.new_page()
    page.set_default_timeout(20_000)
    return page


taking_away = pytest.mark.parametrize("proxy", [True], ids=["takes away"], indirect=True)


@taking_away
def test_every_address_of_every_page_stays_below_the_path(page: Page, proxy: ReverseProxy) -> None:
    origin = f"https://localhost:{proxy.port}"
    waiting, seen, broken = [f"{origin}{BASE}/"], set[str](), []
    page.on("response", lambda answer: answer.status >= 400 and broken.append(answer.url))
    while waiting:
        address = waiting.pop()
        shape = urlsplit(address).path
        if shape in seen or "format=" in address:
            continue
        seen.add(shape)
        page.goto(address)
        for lead in page.evaluate(LEADS):
            parts = urlsplit(lead)
            assert lead.startswith(f"{origin}{BASE}/"), (address, lead)
            if not parts.path.endswith((".css", ".js", ".svg", "/events", "/logout", "/language")):
                waiting += [lead] if is_page(parts.path) else []
    assert len(seen) > 18, sorted(seen)
    # Chromium itself looks for an icon of what is no page, as of a document in plain text.
    assert [url for url in broken if url != f"{origin}/favicon.ico"] == []
    assert set(proxy.strays) <= {"/favicon.ico"}


def is_page(path: str) -> bool:
    """Whether it is read by GET; what forms send elsewhere is not."""
    posted = ("/cordon", "/uncordon", "/acknowledge", "/start", "/cancel", "/display", "/forget")
    return not path.endswith((*posted, "/settings/views"))


def test_the_map_is_live_and_forms_lead_back_below_the_path(
    page: Page, context: BrowserContext, proxy: ReverseProxy
) -> None:
    page.goto(f"{BASE}/")
    expect(page.locator("#link")).to_have_text("live")
    page.get_by_role("button", name="简体中文").click()
    expect(page.locator("h1")).to_have_text("集群视图")
    assert urlsplit(page.url).path == f"{BASE}/"
    page.goto(f"{BASE}/settings")
    page.locator("form[action$='/settings/display'] button").click()
    page.wait_for_url(f"**{BASE}/settings?saved")
    cookies = {cookie["name"]: cookie for cookie in context.cookies()}
    assert cookies.keys() == {
        "__Secure-hami_session", "__Secure-hami_csrf", "django_language", "hami_display",
    }  # fmt: skip
    assert all(each["secure"] and each["path"] == BASE for each in cookies.values())
    assert proxy.strays == []


def test_a_provider_sends_people_back_below_the_path(page: Page, proxy: ReverseProxy) -> None:
    page.context.clear_cookies()
    page.goto(f"{BASE}/drift")
    with page.expect_request("**/authorize?*") as asked:
        page.get_by_role("link", name="Sign in with your organisation's account").click()
    page.wait_for_url(f"**{BASE}/drift")
    query = parse_qs(urlsplit(asked.value.url).query)
    assert query["redirect_uri"] == [f"https://localhost:{proxy.port}{BASE}/oidc/callback"]
    expect(page.locator("header form.who")).to_contain_text("ann")


def test_addresses_in_answers_of_the_api_are_those_of_the_proxy(
    page: Page, proxy: ReverseProxy
) -> None:
    api = f"https://localhost:{proxy.port}{BASE}/api/v1"
    answer = page.request.get(f"{api}/alerts?limit=1").json()
    assert answer["next"].startswith(f"{api}/alerts?")
    assert page.request.get(answer["next"]).json()["results"] != answer["results"]
    found = page.request.get(f"{api}/alerts/{answer['results'][0]['id']}").json()
    assert found["links"]["acknowledge"].startswith(f"{BASE}/api/v1/alerts/")
    schema = page.request.get(f"https://localhost:{proxy.port}{BASE}/api/schema/?format=json")
    assert schema.json()["servers"] == [{"url": BASE}]


@taking_away
def test_a_form_of_another_site_is_refused_behind_tls(page: Page, proxy: ReverseProxy) -> None:
    address = f"https://localhost:{proxy.port}{BASE}/settings/display"
    page.goto(f"{BASE}/settings")
    token = page.locator("form[action$='/settings/display'] [name=csrfmiddlewaretoken]")
    form = {"theme": "dark", "csrfmiddlewaretoken": token.get_attribute("value") or ""}
    ours = {"Origin": f"https://localhost:{proxy.port}"}
    assert page.request.post(address, form=form, headers=ours, max_redirects=0).status == 302
    for origin in ("https://evil.example", f"http://localhost:{proxy.port}"):
        answer = page.request.post(address, form=form, headers={"Origin": origin})
        assert answer.status == 403
