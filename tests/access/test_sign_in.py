"""Signing in and out in a browser, without JavaScript."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from hami_web.access.models import AuditEntry, SignInFailure, User

from .conftest import PASSWORD, TOKENS, post, sign_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("live", "ann")]


def verbs() -> list[tuple[str, str, str]]:
    rows = AuditEntry.objects.order_by("id")
    return list(rows.values_list("verb", "actor", "outcome"))


def test_a_page_leads_to_the_sign_in_and_back(browser: Client) -> None:
    answer = browser.get("/?view=table")
    assert (answer.status_code, answer["Location"]) == (302, "/login?next=%2F%3Fview%3Dtable")
    page = browser.get(answer["Location"]).content.decode()
    assert 'name="next" value="/?view=table"' in page
    answer = sign_in(browser, next="/?view=table")
    assert (answer.status_code, answer["Location"]) == (302, "/?view=table")
    assert "ann" in browser.get("/").content.decode()


@pytest.mark.parametrize("path", ["/fragments/summary", "/events", "/"])
def test_what_scripts_fetch_is_401_and_no_redirect(browser: Client, path: str) -> None:
    answer = browser.get(path, headers={"X-Fragment": "content"} if path == "/" else {})
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:x"])
def test_nobody_is_sent_elsewhere_after_the_sign_in(browser: Client, target: str) -> None:
    assert sign_in(browser, next=target)["Location"] == "/"


def test_signing_out_ends_the_session_on_the_server(browser: Client) -> None:
    sign_in(browser)
    cookie = browser.cookies["hami_session"].value
    assert post(browser, "/logout").status_code == 302
    assert not Session.objects.filter(session_key=cookie).exists()
    browser.cookies["hami_session"] = cookie
    assert browser.get("/").status_code == 302
    assert verbs() == [("sign-in", "ann", "done"), ("sign-out", "ann", "done")]


def test_the_session_has_a_new_key_after_the_sign_in(browser: Client) -> None:
    sign_in(browser)
    first = browser.cookies["hami_session"].value
    sign_in(browser)
    assert browser.cookies["hami_session"].value != first


def test_a_wrong_password_and_an_unknown_name_look_alike(browser: Client) -> None:
    wrong = sign_in(browser, "wrong")
    unknown = sign_in(browser, username="nobody")
    for answer in (wrong, unknown):
        assert answer.status_code == 401
        assert "Name or password is wrong." in answer.content.decode()
    assert [(row.name, row.outcome) for row in AuditEntry.objects.order_by("id")] == [
        ("ann", "refused"),
        ("nobody", "refused"),
    ]
    assert PASSWORD not in str(list(AuditEntry.objects.values()))


def test_forms_without_their_token_are_refused_with_a_page(browser: Client) -> None:
    answer = browser.post("/login", {"username": "ann", "password": PASSWORD})
    assert answer.status_code == 403
    assert "Load the page again" in answer.content.decode()
    assert browser.post("/logout").status_code == 403


def test_failures_make_the_next_try_wait(browser: Client) -> None:
    for _ in range(5):
        assert sign_in(browser, "wrong").status_code == 401
    answer = sign_in(browser)
    assert (answer.status_code, answer["Retry-After"]) == (429, "1")
    assert "Try again in 1 second." in answer.content.decode()
    SignInFailure.objects.update(last_at=datetime.now(UTC) - timedelta(seconds=2))
    assert sign_in(browser).status_code == 302


def test_others_failures_do_not_lock_a_person_out(browser: Client, settings) -> None:
    for count in range(12):
        sign_in(Client(headers={"host": "localhost"}, REMOTE_ADDR=f"10.0.0.{count}"), "wrong")
    assert sign_in(browser).status_code == 302


@pytest.mark.parametrize("change", [{"is_active": False}, {"password": "!"}])
def test_a_session_ends_with_the_account_and_with_its_password(
    browser: Client, change: dict[str, object]
) -> None:
    sign_in(browser)
    assert browser.get("/").status_code == 200
    User.objects.update(**change)
    assert browser.get("/").status_code == 302


def test_someone_without_a_role_is_told_so(browser: Client) -> None:
    User.objects.update(role="")
    sign_in(browser)
    answer = browser.get("/")
    text = answer.content.decode()
    assert answer.status_code == 403
    assert "signed in as <b>ann</b>" in text
    assert "No role is given" in text
    assert 'action="/logout"' in text


def test_cookies_are_for_this_site_and_no_script(browser: Client) -> None:
    sign_in(browser)
    for name in ("hami_session", "hami_csrf"):
        cookie = browser.cookies[name]
        assert cookie["httponly"]
        assert cookie["samesite"] == "Lax"


def test_the_page_needs_nothing_inline_and_speaks_chinese(browser: Client, settings) -> None:
    settings.KUBERNETES_LOGIN = True
    answer = browser.get("/login", headers={"accept-language": "zh-hans"})
    page = answer.content.decode()
    assert "<script" not in page
    assert not re.search(r"<style|\sstyle=|\son\w+=", page)
    assert "unsafe" not in answer["Content-Security-Policy"]
    assert answer["Referrer-Policy"] == "same-origin"
    text = re.sub(r"<head>.*?</head>|<[^>]+>|kubectl create token NAME", " ", page, flags=re.S)
    assert set(re.findall(r"[A-Za-z]{3,}", text)) <= {"Kubernetes", "Pod", "English"}


def test_a_switched_off_way_is_neither_offered_nor_taken(browser: Client, settings) -> None:
    settings.LOCAL_LOGIN = False
    assert "password" not in browser.get("/login").content.decode()
    answer = sign_in(browser)
    assert "switched off" in answer.content.decode()
    assert browser.get("/").status_code == 302


@pytest.mark.usefixtures("cluster")
def test_a_cluster_token_opens_a_session_that_does_not_hold_it(browser: Client) -> None:
    assert post(browser, "/login", token="ann").status_code == 302
    page = browser.get("/")
    assert page.status_code == 200
    (session,) = Session.objects.all()
    assert session.get_decoded()["kubernetes"] == {
        "name": "ann",
        "groups": [*TOKENS["ann"].groups, "system:authenticated"],
        "uid": "1",
    }
    assert verbs() == [("sign-in", "ann", "done")]


@pytest.mark.usefixtures("cluster")
def test_a_token_that_the_cluster_refuses_opens_nothing(browser: Client) -> None:
    answer = post(browser, "/login", token="forged")
    assert answer.status_code == 401
    assert "does not accept this token" in answer.content.decode()
    assert browser.get("/").status_code == 302


def test_a_cluster_that_is_silent_is_no_failure_of_the_person(browser: Client, cluster) -> None:
    cluster.stop()
    assert post(browser, "/login", token="ann").status_code == 503
    assert not SignInFailure.objects.exists()


@pytest.mark.parametrize("path", ["/api/docs/", "/api/schema/"])
def test_the_description_of_the_api_is_there_for_people_who_signed_in(
    browser: Client, path: str
) -> None:
    sign_in(browser)
    assert browser.get(path).status_code == 200
