"""Addresses of signing in and out."""

from django.urls import path

from hami_web.access import views

app_name = "access"
urlpatterns = [
    path("login", views.sign_in, name="login"),
    path("oidc/login", views.oidc_begin, name="oidc"),
    path("oidc/callback", views.oidc_callback, name="oidc-callback"),
    path("logout", views.sign_out, name="logout"),
]
