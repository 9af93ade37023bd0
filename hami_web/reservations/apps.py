"""The mirror of reservations as a Django app."""

from django.apps import AppConfig


class ReservationsConfig(AppConfig):
    """Reservations and the memory slices that they claim."""

    name = "hami_web.reservations"
    default_auto_field = "django.db.models.BigAutoField"
