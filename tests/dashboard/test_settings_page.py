"""Settings and saved views of one browser, and what the about page tells."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Browser, expect

from hami_web.core.errors import InvalidField
from hami_web.dashboard.about_page import sent_files
from hami_web.dashboard.display import CHOICES, Display, parse_display
from hami_web.dashboard.saved_views import (
    VIEWS_MAX,
    SavedView,
    is_page,
    parse_view,
    with_view,
    written,
)
from hami_web.dashboard.settings_page import TITLES, WORDS
from hami_web.history.conditions import AlertCode
from hami_web.history.models import Alert

from .test_browser import browser, site  # noqa: F401  # fixtures
from .test_every_page import _rows_beside_the_browser  # noqa: F401  # fixture

pytestmark = pytest.mark.usefixtures("live")
ROOT = Path(__file__).parents[2]


def test_every_choice_has_words() -> None:
    assert set(TITLES) == set(CHOICES)
    assert set(WORDS) == {(name, value) for name, values in CHOICES.items() for value in values}


def test_reading_the_settings_keeps_nothing(client: Client) -> None:
    answer = client.get("/settings")
    assert "hami_display" not in answer.cookies
    assert 'value="auto" checked' in answer.content.decode()


def test_choices_are_kept_in_the_browser_alone(client: Client) -> None:
    answer = client.post("/settings/display", {"theme": "dark", "times": "local"})
    assert answer.status_code == 302
    assert answer.cookies["hami_display"]["httponly"]
    page = client.get("/settings?saved").content.decode()
    assert "Kept in this browser" in page
    assert 'name="theme" value="dark" checked' in page
    assert 'data-times="local"' in page


@pytest.mark.parametrize(
    ("theme", "media"),
    [("auto", "(prefers-color-scheme: dark)"), ("dark", "all"), ("light", None)],
)
def test_the_theme_says_for_which_media_the_dark_colours_are(
    client: Client, theme: str, media: str | None
) -> None:
    client.post("/settings/display", {"theme": theme})
    for path in ("/", "/login"):
        page = client.get(path).content.decode()
        assert ("dark.css" in page) is (media is not None)
        if media:
            assert f'dark.css" media="{media}"' in page


def test_the_density_of_the_settings_is_used_where_the_address_has_none(client: Client) -> None:
    client.post("/settings/display", {"density": "dense"})
    assert '<div class="nodes dense">' in client.get("/").content.decode()
    assert '<div class="nodes compact">' in client.get("/?density=compact").content.decode()


def test_a_choice_that_is_not_offered_is_refused_and_a_broken_cookie_is_none(
    client: Client,
) -> None:
    assert client.post("/settings/display", {"theme": "pink"}).status_code == 400
    with pytest.raises(InvalidField, match="auto, light, dark"):
        parse_display({"theme": "pink"})
    client.cookies["hami_display"] = "theme=pink&x"
    assert client.get("/").status_code == 200
    assert parse_display({}) == Display()


def test_a_view_is_an_address_under_a_name(client: Client) -> None:
    address = "/?state=free&group=model"
    answer = client.post("/settings/views", {"name": "räume", "address": address})
    assert answer["Location"] == address
    page = client.get("/settings").content.decode()
    assert 'href="/?state=free&amp;group=model">räume</a>' in page
    client.post("/settings/views/forget", {"name": "räume"})
    assert "räume" not in client.get("/").content.decode()


@pytest.mark.parametrize(
    "address",
    ["//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)",
     "/none", "/api/v1/gpus", "/login", "relative", "", "/#x"],
)  # fmt: skip
def test_a_view_leads_to_a_page_of_the_dashboard_only(client: Client, address: str) -> None:
    assert not is_page(address)
    answer = client.post("/settings/views", {"name": "a", "address": address})
    assert answer.status_code == 400
    client.cookies["hami_views"] = written([SavedView("bad", address)])
    assert ">bad</a>" not in client.get("/").content.decode()


@pytest.mark.parametrize("name", ["", "   ", "x" * 41, "a\nb", None])
def test_a_view_has_a_name_that_can_be_read(name: object) -> None:
    with pytest.raises(InvalidField):
        parse_view(name, "/")


def test_views_do_not_outgrow_a_cookie() -> None:
    views: tuple[SavedView, ...] = ()
    for number in range(VIEWS_MAX):
        views = with_view(views, SavedView(str(number), "/"))
    assert with_view(views, SavedView("0", "/alerts"))[-1].address == "/alerts"
    with pytest.raises(InvalidField):
        with_view(views, SavedView("more", "/"))
    with pytest.raises(InvalidField):
        with_view((), SavedView("long", f"/?q={'x' * 4000}"))


def test_a_form_from_elsewhere_saves_nothing() -> None:
    strict = Client(headers={"host": "localhost"}, enforce_csrf_checks=True)
    answer = strict.post("/settings/views", {"name": "a", "address": "/"})
    assert answer.status_code == 403
    assert "hami_views" not in answer.cookies


# --- about ---


def test_every_file_that_is_sent_has_a_licence_and_its_hash(client: Client) -> None:
    files = {file.name: file for file in sent_files()}
    assert "?" not in {file.licence for file in files.values()}
    assert files["drf_spectacular_sidecar/redoc/LICENSE"].licence == "MIT"
    script = ROOT / "static/dashboard/dashboard.js"
    assert files["dashboard/dashboard.js"].sha256 == sha256(script.read_bytes()).hexdigest()
    page = client.get("/about").content.decode()
    for file in files.values():
        assert file.sha256 in page


def test_documents_are_there_without_a_network(client: Client) -> None:
    page = client.get("/about").content.decode()
    assert 'href="/about/documents/dashboard"' in page
    answer = client.get("/about/documents/dashboard")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.content == (ROOT / "docs/dashboard.md").read_bytes()
    assert "https://" not in page
    for name in ("none", "..", "%2e%2e%2fLICENSE", "adr"):
        assert client.get(f"/about/documents/{name}").status_code == 404


@pytest.mark.parametrize("path", ["/settings", "/about"])
def test_neither_page_asks_the_database(
    client: Client, path: str, django_assert_num_queries, db: None
) -> None:
    with django_assert_num_queries(0):
        assert client.get(path).status_code == 200


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_times_and_theme_follow_the_choice(browser: Browser, site: str) -> None:  # noqa: F811
    now = timezone.now()
    Alert.objects.create(
        code=AlertCode.AGENT_STALE, subject="n1", text="t", raised_at=now, seen_at=now
    )
    context = browser.new_context(
        base_url=site, locale="en", timezone_id="Asia/Shanghai", color_scheme="light"
    )
    page = context.new_page()
    page.goto("/settings")
    ground = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(ground)
    page.get_by_label("this browser's time zone").check()
    page.get_by_label("dark", exact=True).check()
    page.get_by_role("button", name="Keep").click()
    page.wait_for_url("**/settings?saved")
    assert page.evaluate(ground) != before
    page.goto("/alerts")
    expect(page.locator("time").first).to_contain_text("GMT+8")
    context.close()
