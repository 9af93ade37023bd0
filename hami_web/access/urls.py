"""Addresses of signing in and out."""

from django.urls import URLPattern

app_name = "access"
urlpatterns: list[URLPattern] = []
