"""The settings of one browser: how pages look, and the views that it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from hami_web.access.declared import needs
from hami_web.access.roles import Verb
from hami_web.core.errors import InvalidField
from hami_web.dashboard import display, saved_views
from hami_web.dashboard.pages import refused, respond
from hami_web.dashboard.seen import seen_map

TITLES: Final[dict[str, Promise]] = {
    "theme": _("Theme"),
    "density": _("Density of the map"),
    "times": _("Times"),
    "motion": _("Motion"),
}
WORDS: Final[dict[tuple[str, str], Promise]] = {
    ("theme", "auto"): _("as the system has it"),
    ("theme", "light"): _("light"),
    ("theme", "dark"): _("dark"),
    ("density", "auto"): _("by number of GPUs"),
    ("density", "comfortable"): _("comfortable"),
    ("density", "compact"): _("compact"),
    ("density", "dense"): _("dense"),
    ("times", "utc"): _("UTC"),
    ("times", "local"): _("this browser's time zone"),
    ("motion", "auto"): _("as the system has it"),
    ("motion", "reduced"): _("none"),
}


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of a field."""

    value: str
    word: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Field:
    """One field of the form."""

    name: str
    title: str
    choices: tuple[Choice, ...]


@needs(Verb.READ)
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """The form; reading it changes nothing."""
    current = seen_map(request)
    chosen = display.display_of(request)
    fields = [
        Field(
            name,
            str(TITLES[name]),
            tuple(
                Choice(value, str(WORDS[name, value]), value == getattr(chosen, name))
                for value in values
            ),
        )
        for name, values in display.CHOICES.items()
    ]
    context = {"fields": fields, "saved": "saved" in request.GET}
    return respond(request, "dashboard/settings.html", context, current=current)


@needs(Verb.READ)
@require_POST
def save(request: HttpRequest) -> HttpResponse:
    """Keep the choices in the browser."""
    try:
        chosen = display.parse_display(request.POST.dict())
    except InvalidField as error:
        return refused(request, error, seen_map(request))
    return _back(request, display.COOKIE, chosen.written)


@needs(Verb.READ)
@require_POST
def save_view(request: HttpRequest) -> HttpResponse:
    """Keep the address of a page under a name."""
    try:
        new = saved_views.parse_view(request.POST.get("name", ""), request.POST.get("address", ""))
        views = saved_views.with_view(saved_views.saved_views(request), new)
    except InvalidField as error:
        return refused(request, error, seen_map(request))
    response = HttpResponseRedirect(new.address)
    return _keep(response, saved_views.COOKIE, saved_views.written(views))


@needs(Verb.READ)
@require_POST
def forget_view(request: HttpRequest) -> HttpResponse:
    """Forget the view of a name."""
    name = request.POST.get("name", "")
    views = [view for view in saved_views.saved_views(request) if view.name != name]
    return _back(request, saved_views.COOKIE, saved_views.written(views))


def _back(request: HttpRequest, cookie: str, value: str) -> HttpResponse:  # noqa: ARG001
    response = redirect("dashboard:settings")
    response["Location"] += "?saved"
    return _keep(response, cookie, value)


def _keep(response: HttpResponse, cookie: str, value: str) -> HttpResponse:
    response.set_cookie(
        cookie,
        value,
        max_age=display.COOKIE_S,
        path=settings.SESSION_COOKIE_PATH,
        secure=settings.WEB_HTTPS,
        httponly=True,
        samesite="Lax",
    )
    return response
