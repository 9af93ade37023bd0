"""Signing in and out."""

from __future__ import annotations

import math
from http import HTTPStatus
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import authenticate
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
)
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from hami_web.access import backoff, sessions
from hami_web.access.declared import public
from hami_web.access.errors import IdentityUnavailable
from hami_web.access.forms import PasswordForm, TokenForm
from hami_web.access.models import User
from hami_web.access.network import client_address
from hami_web.access.pacing import TokenBuckets
from hami_web.access.reviewer import reviewer

KUBERNETES = "kubernetes token"
"""Stands for the name where none is claimed."""
BEGINS_A_MINUTE: Final = 30
"""Sign-ins by OIDC that one address may begin; each is a row in the database."""
_begins = TokenBuckets(BEGINS_A_MINUTE)


@public
@sensitive_post_parameters()
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """The page with every way that is switched on."""
    if request.method != "POST":
        if "failed" not in request.GET:
            return _page(request)
        text = gettext(
            "The account provider did not let you in, or does not answer now. Try again."
        )
        return _page(request, text, HTTPStatus.UNAUTHORIZED)
    by_token = "token" in request.POST
    if not (settings.KUBERNETES_LOGIN if by_token else settings.LOCAL_LOGIN):
        return _page(request, gettext("This way of signing in is switched off."))
    form = TokenForm(request.POST) if by_token else PasswordForm(request.POST)
    if not form.is_valid():
        return _page(request, gettext("Fill in every field."))
    name = KUBERNETES if by_token else form.cleaned_data["username"]
    wait_s = backoff.wait_s(name, client_address(request))
    if wait_s > 0:
        return _too_often(request, wait_s)
    if by_token:
        return _by_token(request, form.cleaned_data["token"])
    return _by_password(request, name, form.cleaned_data["password"])


@public
@never_cache
@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session."""
    sessions.end_session(request)
    return redirect("access:login")


def next_address(request: HttpRequest) -> str:
    """Where to go after the sign-in: only an address of ours."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    safe = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if safe else resolve_url(settings.LOGIN_REDIRECT_URL)


def _by_password(request: HttpRequest, name: str, password: str) -> HttpResponse:
    user = authenticate(request, username=name, password=password)
    if not isinstance(user, User):
        return _refused(request, "local", name, gettext("Name or password is wrong."))
    backoff.forget_failures(name, client_address(request))
    sessions.begin_user_session(request, user)
    return HttpResponseRedirect(next_address(request))


def _by_token(request: HttpRequest, token: str) -> HttpResponse:
    try:
        user = reviewer().user_of(token)
    except IdentityUnavailable:
        text = gettext("The cluster does not answer now. Try again later.")
        return _page(request, text, HTTPStatus.SERVICE_UNAVAILABLE)
    if user is None:
        return _refused(
            request, "kubernetes", KUBERNETES, gettext("The cluster does not accept this token.")
        )
    sessions.begin_kubernetes_session(request, user, token)
    return HttpResponseRedirect(next_address(request))


def _refused(request: HttpRequest, source: str, name: str, text: str) -> HttpResponse:
    backoff.note_failure(name, client_address(request))
    sessions.refuse_sign_in(request, source, name)
    return _page(request, text, HTTPStatus.UNAUTHORIZED)


def _too_often(request: HttpRequest, wait_s: float) -> HttpResponse:
    seconds = math.ceil(wait_s)
    text = ngettext(
        "Too many failed attempts. Try again in %(count)d second.",
        "Too many failed attempts. Try again in %(count)d seconds.",
        seconds,
    )
    response = _page(request, text % {"count": seconds}, HTTPStatus.TOO_MANY_REQUESTS)
    response["Retry-After"] = str(seconds)
    return response


def _page(
    request: HttpRequest, error: str = "", status: HTTPStatus = HTTPStatus.OK
) -> HttpResponse:
    context: dict[str, Any] = {
        "error": error,
        "next": next_address(request),
        "password_form": PasswordForm() if settings.LOCAL_LOGIN else None,
        "token_form": TokenForm() if settings.KUBERNETES_LOGIN else None,
        "oidc": bool(settings.OIDC_ISSUER),
    }
    response = render(request, "access/login.html", context, status=status)
    if status is HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = 'Bearer realm="hami-web"'
    return response


@public
@never_cache
@require_http_methods(["GET"])
def oidc_begin(request: HttpRequest) -> HttpResponseBase:
    """To the OIDC provider."""
    wait_s = _begins.take(client_address(request)) if settings.OIDC_ISSUER else 0.0
    if wait_s:
        return _too_often(request, wait_s)
    response: HttpResponseBase = _oidc().Begin.as_view()(request)
    return response


@public
@never_cache
@require_http_methods(["GET"])
def oidc_callback(request: HttpRequest) -> HttpResponseBase:
    """Back from the OIDC provider."""
    response: HttpResponseBase = _oidc().Callback.as_view()(request)
    return response


def _oidc() -> ModuleType:
    """Its library is there only where it is wanted. Raises Http404 where it is switched off."""
    if not settings.OIDC_ISSUER:
        raise Http404("OIDC is switched off")
    return import_module("hami_web.access.oidc")
