"""Addresses of the process that answers people; the extender has its own (extender/urls.py)."""

from django.apps import apps
from django.urls import URLPattern, URLResolver, include, path
from django.views.i18n import set_language

from hami_web.access.declared import public
from hami_web.dashboard import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", views.healthz),
    path("readyz", views.readyz),
    path("language", public(set_language), name="set_language"),
]
if apps.is_installed("hami_web.api"):  # not in the extender, which checks these addresses too
    urlpatterns += [
        path("", include("hami_web.dashboard.urls")),
        path("api/", include("hami_web.api.urls")),
        path("", include("hami_web.access.urls")),
    ]
