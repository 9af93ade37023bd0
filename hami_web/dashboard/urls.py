"""Addresses of the dashboard."""

from django.urls import path

from hami_web.dashboard import drain_page, fragmentation_page, gpu_page, node_page, views, what_if_page

app_name = "dashboard"
urlpatterns = [
    path("", views.page, name="page"),
    path("fragmentation", fragmentation_page.page, name="fragmentation"),
    path("what-if", what_if_page.page, name="what-if"),
    path("drain-plan", drain_page.page, name="drain"),
    path("nodes/<str:name>", node_page.page, name="node-page"),
    path("gpus/<str:uuid>", gpu_page.page, name="gpu-page"),
    path("fragments/summary", views.summary, name="summary"),
    path("fragments/gpus/<str:uuid>", views.gpu, name="gpu"),
    path("events", views.events, name="events"),
]
