"""The story's banner by itself, and the forms in it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from hami_web.access.declared import public
from hami_web.dashboard.saved_views import is_page
from hami_web.simulator.demo_board import Order
from hami_web.simulator.demo_web.banner import COOKIE, HIDDEN, board


@public
@require_safe
def banner(request: HttpRequest) -> HttpResponse:
    """What the banner says now, for a page that is open."""
    response = render(request, "demo/told.html")
    response["Cache-Control"] = "no-cache"
    return response


@public
@require_POST
def order(request: HttpRequest) -> HttpResponse:
    """Pause, go on, go to the next chapter or begin again; leads back to the page."""
    try:
        board().ask(Order(request.POST.get("order", "")))
    except ValueError:
        allowed = ", ".join(Order)
        return HttpResponseBadRequest(f"order: allowed: {allowed}", content_type="text/plain")
    return _back(request)


@public
@require_POST
def show(request: HttpRequest) -> HttpResponse:
    """Hide the banner until the browser is closed, or show it again; leads back to the page."""
    response = _back(request)
    if request.POST.get("shown") == "no":
        response.set_cookie(COOKIE, HIDDEN, httponly=True, samesite="Lax")
    else:
        response.delete_cookie(COOKIE, samesite="Lax")
    return response


def _back(request: HttpRequest) -> HttpResponse:
    page = request.POST.get("next", "")
    return redirect(page if is_page(page) else "dashboard:page")
