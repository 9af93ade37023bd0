"""The REST API as a Django app."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """Tokens, and the views that they open."""

    name = "hami_web.api"
    default_auto_field = "django.db.models.BigAutoField"
