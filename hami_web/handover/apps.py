"""The take-over of nodes as a Django app."""

from django.apps import AppConfig


class HandoverConfig(AppConfig):
    """Take-overs of nodes, their events and lifecycle tests."""

    name = "hami_web.handover"
    default_auto_field = "django.db.models.BigAutoField"
