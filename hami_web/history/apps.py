"""History as a Django app."""

from django.apps import AppConfig


class HistoryConfig(AppConfig):
    """Samples, refusals, corrections, alerts."""

    name = "hami_web.history"
    default_auto_field = "django.db.models.BigAutoField"
