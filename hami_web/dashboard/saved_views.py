"""Named addresses that a browser keeps in a cookie: a saved view is a page with its parameters."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from django.http import HttpRequest
from django.urls import Resolver404, resolve, reverse

from hami_web.core.errors import InvalidField

COOKIE: Final = "hami_views"
COOKIE_MAX: Final = 3800
"""Bytes of its value; browsers keep 4,096 of a cookie with its name."""
NAME_MAX: Final = 40
VIEWS_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class SavedView:
    """``address`` is a path of ours with its query."""

    name: str
    address: str


def saved_views(request: HttpRequest) -> tuple[SavedView, ...]:
    """Those of a request's cookie, in the order of saving; what means nothing is left out."""
    try:
        given = json.loads(unquote(request.COOKIES.get(COOKIE, "")))
    except ValueError:
        return ()
    if not isinstance(given, list):
        return ()
    pairs = [each for each in given if isinstance(each, list) and len(each) == 2]
    views = []
    for name, address in pairs[:VIEWS_MAX]:
        try:
            views.append(parse_view(name, address))
        except InvalidField:
            continue
    return tuple(views)


def parse_view(name: object, address: object) -> SavedView:
    """A view as a form or a cookie gives it. Raises InvalidField."""
    text = name.strip() if isinstance(name, str) else ""
    if not 1 <= len(text) <= NAME_MAX or not text.isprintable():
        raise InvalidField("name", text[:NAME_MAX], f"1…{NAME_MAX} characters")
    if not isinstance(address, str) or not is_page(address):
        raise InvalidField("address", str(address)[:NAME_MAX], "a page of this dashboard")
    return SavedView(text, address)


def is_page(address: str) -> bool:
    """Whether it is a path of the dashboard, on this very host."""
    parts = urlsplit(address)
    prefix = reverse("dashboard:page")
    if parts.scheme or parts.netloc or parts.fragment or not parts.path.startswith(prefix):
        return False
    try:
        match = resolve(f"/{parts.path.removeprefix(prefix)}")
    except Resolver404:
        return False
    return match.app_name == "dashboard" and "\\" not in address


def with_view(views: Iterable[SavedView], new: SavedView) -> tuple[SavedView, ...]:
    """The views with a new one, in place of that of its name. Raises InvalidField for too many."""
    kept = (*(view for view in views if view.name != new.name), new)
    if len(kept) > VIEWS_MAX or len(written(kept)) > COOKIE_MAX:
        raise InvalidField("name", new.name, f"at most {VIEWS_MAX} views of {COOKIE_MAX} bytes")
    return kept


def written(views: Iterable[SavedView]) -> str:
    """As the cookie has them."""
    pairs = [[view.name, view.address] for view in views]
    return quote(json.dumps(pairs, separators=(",", ":"), ensure_ascii=False))


def kept(request: HttpRequest) -> dict[str, object]:
    """Context processor: ``saved_views`` for every template."""
    return {"saved_views": saved_views(request)}
