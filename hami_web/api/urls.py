"""Addresses below ``/api/``."""

from django.urls import path
from drf_spectacular.views import SpectacularAPIView

from hami_web.api import views
from hami_web.api.documents import SwaggerPage

urlpatterns = [
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", SwaggerPage.as_view(url_name="schema"), name="docs"),
    path("v1/nodes", views.Nodes.as_view()),
    path("v1/gpus", views.Gpus.as_view()),
    path("v1/gpus/<str:uuid>/map", views.GpuMap.as_view()),
    path("v1/gpus/<str:uuid>/map.svg", views.GpuDrawing.as_view()),
    path("v1/profiles", views.Profiles.as_view()),
    path("v1/reservations", views.Reservations.as_view()),
    path("v1/pods/<str:namespace>/<str:pod>/why", views.Why.as_view()),
    path("v1/fragmentation", views.FragmentationNow.as_view()),
    path("v1/usage", views.UsageHours.as_view()),
    path("v1/alerts", views.Alerts.as_view()),
    path("v1/drift", views.Drifts.as_view()),
    path("v1/reconciliations", views.Reconciliations.as_view()),
    path("v1/samples", views.Samples.as_view()),
]
