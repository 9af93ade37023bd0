"""The mirror of nodes and GPUs as a Django app."""

from django.apps import AppConfig


class InventoryConfig(AppConfig):
    """Nodes, GPUs, profiles, blocked intervals."""

    name = "hami_web.inventory"
    default_auto_field = "django.db.models.BigAutoField"
