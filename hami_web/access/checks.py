"""System checks of who may come in, numbered from ``hami.E010`` and ``hami.W010``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.urls import URLPattern, URLResolver, get_resolver

from hami_web.access.policy import InvalidAccessPolicy, parse_access_policy
from hami_web.startup import OWN_CHECKS


@register(OWN_CHECKS)
def check_access_policy(app_configs: Any = None, **_options: Any) -> Sequence[CheckMessage]:  # noqa: ARG001
    """hami.E010: the policy file's section about people must be readable."""
    try:
        parse_access_policy(settings.ACCESS_POLICY)
    except InvalidAccessPolicy as error:
        return [Error(f"HAMI_POLICY_FILE: {error}", hint="See HAMI_POLICY_FILE.", id="hami.E010")]
    return []


@register(OWN_CHECKS)
def check_proxies(app_configs: Any = None, **_options: Any) -> Sequence[CheckMessage]:  # noqa: ARG001
    """hami.E011, hami.E012: what a proxy tells is believed from some address, or from none."""
    if settings.PROXY_ADDRESSES:
        return []
    found: list[CheckMessage] = []
    hint = "See HAMI_PROXY_ADDRESSES."
    if settings.PROXY_USER_HEADER:
        text = "HAMI_PROXY_USER_HEADER: no proxy is allowed to send it"
        found.append(Error(text, hint=hint, id="hami.E011"))
    if settings.WEB_HTTPS:
        text = "HAMI_WEB_HTTPS: TLS ends at a proxy, and none is allowed to say so"
        found.append(Error(text, hint=hint, id="hami.E012"))
    return found


@register(Tags.urls)
def check_base_path(app_configs: Any = None, **_options: Any) -> Sequence[CheckMessage]:  # noqa: ARG001
    """hami.E014: with a base like an address of ours, nobody knows what a path means."""
    first = settings.BASE_PATH.partition("/")[2].partition("/")[0]
    if not first or first not in _first_words(get_resolver().url_patterns):
        return []
    text = f"HAMI_BASE_PATH: {settings.BASE_PATH!r} begins like an address of the dashboard's own"
    return [Error(text, hint="Choose another name.", id="hami.E014")]


def _first_words(patterns: Iterable[URLPattern | URLResolver]) -> set[str]:
    """The names that addresses begin with."""
    words: set[str] = set()
    for each in patterns:
        word = str(each.pattern).partition("/")[0]
        if word:
            words.add(word)
        elif isinstance(each, URLResolver):
            words |= _first_words(each.url_patterns)
    return words


@register(OWN_CHECKS)
def check_oidc(app_configs: Any = None, **_options: Any) -> Sequence[CheckMessage]:  # noqa: ARG001
    """hami.E013: what sign-in by OIDC needs."""
    if not settings.OIDC_ISSUER:
        return []
    lacking = [
        name
        for name, value in (
            ("HAMI_OIDC_CLIENT_ID", settings.OIDC_RP_CLIENT_ID),
            ("HAMI_OIDC_CLIENT_SECRET", settings.OIDC_RP_CLIENT_SECRET),
        )
        if not value
    ]
    texts = [f"{name}: HAMI_OIDC_ISSUER needs it" for name in lacking]
    issuer = urlsplit(settings.OIDC_ISSUER)
    if issuer.scheme != "https" and not _is_loopback(issuer.hostname or ""):
        texts.append(f"HAMI_OIDC_ISSUER: {settings.OIDC_ISSUER!r}: allowed: https://…")
    if find_spec("mozilla_django_oidc") is None:
        texts.append("HAMI_OIDC_ISSUER: the extra oidc is not installed")
    return [Error(text, id="hami.E013") for text in texts]


@register(Tags.security, deploy=True)
def check_anonymous(app_configs: Any = None, **_options: Any) -> Sequence[CheckMessage]:  # noqa: ARG001
    """hami.W010: whoever reaches the process may read."""
    host = settings.WEB_LISTEN.rpartition(":")[0].strip("[]")
    if settings.ANONYMOUS_ROLE == "none" or _is_loopback(host):
        return []
    text = f"HAMI_ANONYMOUS_ROLE: everyone who reaches {settings.WEB_LISTEN} may read"
    return [CheckWarning(text, hint="Listen on loopback, or let people sign in.", id="hami.W010")]


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
