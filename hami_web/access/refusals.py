"""What a refused request is told: pages for people, one line for scripts."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext

from hami_web.access.caller import Caller


def plain_refusal(status: HTTPStatus, text: str) -> HttpResponse:
    """A line of text that nobody keeps."""
    response = HttpResponse(f"{text}\n", status=status, content_type="text/plain; charset=utf-8")
    response["Cache-Control"] = "no-store"
    if status is HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = 'Bearer realm="hami-web"'
    return response


def denied_page(request: HttpRequest, caller: Caller) -> HttpResponse:
    """403 for someone who signed in: who they are here, and what they lack."""
    sign_out = reverse("access:logout") if caller.has_session else ""
    context = {"caller": caller, "text": "", "sign_out": sign_out}
    return render(request, "access/denied.html", context, status=HTTPStatus.FORBIDDEN)


def unseen_page(request: HttpRequest) -> HttpResponse:
    """403 for an address in a namespace that the caller does not see, whether it exists or not."""
    text = gettext("This namespace is unavailable to you.")
    context = {"caller": None, "text": text}
    return render(request, "access/denied.html", context, status=HTTPStatus.FORBIDDEN)


def refuse_forged(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001  # Django's own words are no help to people
    """403 for a form without its CSRF token."""
    text = gettext("This form was not from here or is too old. Load the page again, then send it.")
    context = {"caller": None, "text": text}
    return render(request, "access/denied.html", context, status=HTTPStatus.FORBIDDEN)
