"""What all pages share: the frame around their content, and the answer that says how old it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from hami_web.access.declared import FRAGMENT
from hami_web.access.identity import caller_of
from hami_web.access.roles import Verb
from hami_web.core.errors import InvalidField
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.freshness import Freshness
from hami_web.dashboard.installed import installed_map

NAVIGATION: Final[tuple[tuple[str, Promise, Verb], ...]] = (
    ("dashboard:page", _("Map"), Verb.READ),
    ("dashboard:namespaces", _("Namespaces"), Verb.READ),
    ("dashboard:fragmentation", _("Fragmentation"), Verb.READ),
    ("dashboard:what-if", _("What if"), Verb.WHAT_IF),
    ("dashboard:drain", _("Drain plan"), Verb.PLAN_DRAIN),
    ("dashboard:history", _("History"), Verb.READ),
    ("dashboard:alerts", _("Alerts"), Verb.READ),
    ("dashboard:drift", _("Drift"), Verb.READ),
    ("dashboard:migration", _("Moving in"), Verb.READ),
    ("dashboard:setup", _("Setup"), Verb.READ),
    ("dashboard:audit", _("Audit log"), Verb.READ_AUDIT),
)
"""Addresses of the pages that every page links to, in order: title, and who may go there."""


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """One link of the navigation."""

    address: str
    title: str
    is_here: bool


def respond(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    *,
    current: ClusterMap | None,
    status: int = HTTPStatus.OK,
) -> HttpResponse:
    """A page, or its content alone where the request asks for that.

    ``template`` is the page's; its content is the template of the same name with ``_content``.
    """
    content = template.replace(".html", "_content.html")
    freshness = installed_map().freshness()
    frame = {
        "content_template": content,
        "navigation": navigation(request),
        "freshness": freshness,
        "age_s": seconds(freshness),
        "version": current.version if current else 0,
        "caller": (caller := caller_of(request)),
        "may": {
            "cordon": caller is not None and caller.may(Verb.CORDON),
            # The page of what-if has the same form, larger.
            "ask": caller is not None
            and caller.may(Verb.WHAT_IF)
            and request.path != reverse("dashboard:what-if"),
            "acknowledge": caller is not None and caller.may(Verb.ACKNOWLEDGE),
        },
    }
    fragment = request.headers.get(FRAGMENT) == "content"
    response = render(
        request, content if fragment else template, {**frame, **context}, status=status
    )
    patch_vary_headers(response, (FRAGMENT,))
    return marked(response, current.version if current else 0)


def missing(request: HttpRequest, what: str, current: ClusterMap | None) -> HttpResponse:
    """404 for something that the cluster does not have, 503 while the cluster is not known."""
    status = HTTPStatus.NOT_FOUND if current else HTTPStatus.SERVICE_UNAVAILABLE
    return respond(
        request, "dashboard/missing.html", {"what": what}, current=current, status=status
    )


def refused(request: HttpRequest, error: InvalidField, current: ClusterMap | None) -> HttpResponse:
    """400 for an address that means nothing: names the parameter, its value, what is allowed."""
    return respond(
        request,
        "dashboard/refused.html",
        {"error": error},
        current=current,
        status=HTTPStatus.BAD_REQUEST,
    )


def marked(response: HttpResponse, version: int) -> HttpResponse:
    """Say which version this is and how old; browsers ask again each time and compare the ETag."""
    response["Cache-Control"] = "private, no-cache"
    response["X-Data-Version"] = str(version)
    response["X-Data-Age"] = seconds(installed_map().freshness())
    return response


def seconds(freshness: Freshness) -> str:
    """Age for the page's script, in seconds and with a point in every language."""
    return "" if freshness.age_s is None else f"{freshness.age_s:.1f}"


def navigation(request: HttpRequest) -> list[NavigationEntry]:
    """The links that the caller may follow; the one to this very page is marked."""
    caller = caller_of(request)
    return [
        NavigationEntry(address := reverse(name), str(title), address == request.path)
        for name, title, verb in NAVIGATION
        if caller is not None and caller.may(verb)
    ]
