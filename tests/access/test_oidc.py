"""Sign-in by a real OpenID Connect provider over HTTP."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.test import Client

from hami_web.access import oidc, views
from hami_web.access.checks import check_oidc
from hami_web.access.models import AuditEntry, User
from hami_web.access.pacing import TokenBuckets
from hami_web.access.people import caller_of_user
from hami_web.access.roles import Role

from .conftest import PASSWORD, POLICY, sign_in
from .provider import CLIENT, SECRET, Provider

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("live", "configured")]


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    with Provider() as provider:
        yield provider


@pytest.fixture
def provider(running: Provider) -> Provider:
    running.claims = {"sub": "u1", "preferred_username": "ann", "groups": ["gpu-operators"]}
    running.lies, running.userinfo = {}, {}
    running.is_broken, running.signing_key = False, running.key
    return running


@pytest.fixture
def configured(provider: Provider, settings, monkeypatch: pytest.MonkeyPatch) -> None:
    oidc._described.clear()
    stopped = TokenBuckets(views.BEGINS_A_MINUTE, clock=lambda: 0.0)
    monkeypatch.setattr(views, "_begins", stopped)
    settings.OIDC_ISSUER = provider.issuer
    settings.OIDC_RP_CLIENT_ID, settings.OIDC_RP_CLIENT_SECRET = CLIENT, SECRET
    settings.ACCESS_POLICY = POLICY
    settings.AUTHENTICATION_BACKENDS = [
        "django.contrib.auth.backends.ModelBackend",
        "hami_web.access.oidc.OidcBackend",
    ]


def follow(address: str) -> str:
    """Go to the provider as a browser does; returns where it sends one."""
    url = urlsplit(address)
    connection = http.client.HTTPConnection(url.netloc, timeout=10)
    connection.request("GET", f"{url.path}?{url.query}")
    location = connection.getresponse().getheader("Location")
    connection.close()
    assert location is not None
    return location


def begin(browser: Client, after: str = "/") -> str:
    """Begin a sign-in; returns the address at which the provider sends the browser back."""
    answer = browser.get(f"/oidc/login?next={after}")
    assert answer.status_code == 302, answer.content
    back = urlsplit(follow(answer["Location"]))
    assert back.path == "/oidc/callback"
    return f"{back.path}?{back.query}"


def outcomes() -> list[tuple[str, str, str]]:
    rows = AuditEntry.objects.order_by("id")
    return list(rows.values_list("verb", "actor", "outcome"))


def is_in(browser: Client) -> bool:
    return browser.get("/").status_code == 200


def test_a_person_signs_in_and_comes_back_where_they_were(browser: Client) -> None:
    assert "/oidc/login?next=" in browser.get("/login").content.decode()
    answer = browser.get(begin(browser, "/%3Fview=table"))
    assert (answer.status_code, answer["Location"]) == (302, "/?view=table")
    assert is_in(browser)
    assert outcomes() == [("sign-in", "ann", "done")]


def test_groups_become_a_role_anew_at_each_sign_in(browser: Client, provider: Provider) -> None:
    browser.get(begin(browser))
    assert caller_of_user(User.objects.get()).role is Role.OPERATOR
    provider.claims = {**provider.claims, "groups": ["gpu-admins"], "preferred_username": "anne"}
    browser.get(begin(browser))
    user = User.objects.get()
    assert (user.username, caller_of_user(user).role) == ("oidc:anne", Role.ADMIN)


def test_the_policy_of_today_counts_not_that_of_the_sign_in(browser: Client, settings) -> None:
    browser.get(begin(browser))
    assert is_in(browser)
    settings.ACCESS_POLICY = {"roleGroups": {"admin": ["others"]}}
    assert browser.get("/").status_code == 403


def test_groups_may_be_in_the_user_info(browser: Client, provider: Provider) -> None:
    provider.lies = {"groups": None}
    provider.userinfo = {"groups": ["gpu-admins"]}
    browser.get(begin(browser))
    assert User.objects.get().groups == ["gpu-admins"]


@pytest.mark.parametrize(
    "lies",
    [
        {"aud": "someone-else"},
        {"aud": [CLIENT, "x"], "azp": "x"},
        {"iss": "http://evil.example"},
        {"nonce": "another"},
        {"nonce": None},
        {"exp": 1_700_000_000},  # of 2023, and the same in every process that collects this
        {"exp": None},
        {"sub": ""},
        {"preferred_username": None},
        {"preferred_username": ["ann"]},
        {"groups": "gpu-admins"},
    ],
    ids=str,
)
def test_a_token_that_is_not_for_us_now_opens_nothing(
    browser: Client, provider: Provider, lies: dict[str, Any]
) -> None:
    provider.lies = lies
    answer = browser.get(begin(browser))
    assert answer["Location"] == "/login?failed=oidc"
    assert not is_in(browser)
    assert not User.objects.exists()
    assert outcomes() == [("sign-in", "", "refused")]


def test_a_token_signed_by_another_key_opens_nothing(browser: Client, provider: Provider) -> None:
    provider.signing_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    browser.get(begin(browser))
    assert not is_in(browser)


def test_user_info_of_someone_else_opens_nothing(browser: Client, provider: Provider) -> None:
    provider.userinfo = {"sub": "u2"}
    browser.get(begin(browser))
    assert not is_in(browser)


def test_a_code_works_once_and_only_in_the_browser_that_began(browser: Client) -> None:
    address = begin(browser)
    thief = Client(headers={"host": "localhost"})
    assert thief.get(address)["Location"] == "/login?failed=oidc"
    assert not is_in(thief)
    assert browser.get(address)["Location"] == "/"
    again = browser.get(address)
    assert again["Location"] == "/login?failed=oidc"


def test_a_refusal_of_the_provider_is_told(browser: Client) -> None:
    state = parse_qs(urlsplit(begin(browser)).query)["state"][0]
    answer = browser.get(f"/oidc/callback?error=access_denied&state={state}")
    page = browser.get(answer["Location"])
    assert page.status_code == 401
    assert "did not let you in" in page.content.decode()


def test_a_provider_that_fails_neither_ends_sessions_nor_other_ways(
    browser: Client, provider: Provider, ann: User
) -> None:
    browser.get(begin(browser))
    other = Client(headers={"host": "localhost"}, enforce_csrf_checks=True)
    address = begin(other)
    provider.is_broken = True
    oidc._described.clear()
    assert is_in(browser)
    assert other.get(address)["Location"] == "/login?failed=oidc"
    assert other.get("/oidc/login").status_code == 503
    assert sign_in(other, PASSWORD).status_code == 302


def test_a_description_of_another_issuer_is_not_believed(
    browser: Client, provider: Provider
) -> None:
    provider.lies = {"issuer": "http://evil.example"}
    assert browser.get("/oidc/login").status_code == 503


def test_a_name_never_meets_that_of_a_local_person(browser: Client, ann: User) -> None:
    browser.get(begin(browser))
    names = User.objects.order_by("username").values_list("username", "source")
    assert list(names) == [("ann", "local"), ("oidc:ann", "oidc")]
    assert sign_in(browser, "!", "oidc:ann").status_code == 401


def test_a_name_belongs_to_the_first_who_has_it(browser: Client, provider: Provider) -> None:
    browser.get(begin(browser))
    provider.claims = {**provider.claims, "sub": "u2"}
    other = Client(headers={"host": "localhost"})
    other.get(begin(other))
    assert not is_in(other)
    assert User.objects.get().subject == f"{provider.issuer} u1"


def test_an_ended_account_stays_out(browser: Client) -> None:
    browser.get(begin(browser))
    User.objects.update(is_active=False)
    assert not is_in(browser)
    browser.get(begin(browser))
    assert not is_in(browser)


def test_nobody_is_sent_elsewhere_afterwards(browser: Client) -> None:
    assert browser.get(begin(browser, "https://evil.example/"))["Location"] == "/"


def test_an_address_begins_only_so_many(browser: Client) -> None:
    codes = [browser.get("/oidc/login").status_code for _ in range(views.BEGINS_A_MINUTE + 1)]
    assert codes == [302] * views.BEGINS_A_MINUTE + [429]


def test_switched_off_it_is_not_there(browser: Client, settings) -> None:
    settings.OIDC_ISSUER = ""
    assert browser.get("/oidc/login").status_code == 404
    assert browser.get("/oidc/callback?code=x&state=y").status_code == 404
    assert "/oidc/login" not in browser.get("/login").content.decode()


def test_what_it_lacks_is_an_error(settings) -> None:
    assert check_oidc() == []
    settings.OIDC_RP_CLIENT_SECRET = ""
    settings.OIDC_ISSUER = "http://login.example"
    texts = [found.msg for found in check_oidc()]
    assert "HAMI_OIDC_CLIENT_SECRET" in texts[0]
    assert "https" in texts[1]
