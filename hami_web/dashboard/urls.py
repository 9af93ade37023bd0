"""Addresses of the dashboard."""

from django.urls import path

from hami_web.dashboard import views

app_name = "dashboard"
urlpatterns = [
    path("", views.page, name="page"),
    path("fragments/summary", views.summary, name="summary"),
    path("fragments/gpus/<str:uuid>", views.gpu, name="gpu"),
    path("events", views.events, name="events"),
]
