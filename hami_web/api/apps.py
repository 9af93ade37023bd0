"""The REST API as a Django app."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """Reads of the mirror."""

    name = "hami_web.api"
    default_auto_field = "django.db.models.BigAutoField"
