"""Addresses of signing in and out."""

from django.urls import path

from hami_web.access import views

app_name = "access"
urlpatterns = [
    path("login", views.sign_in, name="login"),
    path("logout", views.sign_out, name="logout"),
]
