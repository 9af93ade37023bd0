"""Access as a Django app."""

from django.apps import AppConfig


class AccessConfig(AppConfig):
    """Users, API tokens and the audit log."""

    name = "hami_web.access"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks."""
        from hami_web.access import checks  # noqa: F401, PLC0415
