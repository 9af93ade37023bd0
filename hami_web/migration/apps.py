"""Readiness checks as a Django app."""

from django.apps import AppConfig


class MigrationConfig(AppConfig):
    """Runs, nodes, findings."""

    name = "hami_web.migration"
    default_auto_field = "django.db.models.BigAutoField"
