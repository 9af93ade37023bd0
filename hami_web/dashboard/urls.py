"""Addresses of the dashboard."""

from django.urls import path

from hami_web.dashboard import fragmentation_page, gpu_page, node_page, views

app_name = "dashboard"
urlpatterns = [
    path("", views.page, name="page"),
    path("fragmentation", fragmentation_page.page, name="fragmentation"),
    path("nodes/<str:name>", node_page.page, name="node-page"),
    path("gpus/<str:uuid>", gpu_page.page, name="gpu-page"),
    path("fragments/summary", views.summary, name="summary"),
    path("fragments/gpus/<str:uuid>", views.gpu, name="gpu"),
    path("events", views.events, name="events"),
]
