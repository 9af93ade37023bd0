"""Addresses of the demo's web process."""

from __future__ import annotations

from django.urls import include, path

from hami_web.simulator.demo_web import views

_story = (
    [
        path("banner", views.banner, name="banner"),
        path("order", views.order, name="order"),
        path("shown", views.show, name="show"),
    ],
    "demo",
)
urlpatterns = [path("demo/", include(_story)), path("", include("hami_web.urls"))]
