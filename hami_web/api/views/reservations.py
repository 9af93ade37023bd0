"""Reservations of any moment."""

from __future__ import annotations

from django.db.models import QuerySet

from hami_web.api.listing import ListView
from hami_web.api.parameters import (
    MOMENT,
    Filter,
    by_choice,
    by_flag,
    by_search,
    by_text,
    by_time,
    parse_moment,
)
from hami_web.api.serializers import reservations as shapes
from hami_web.reservations import selectors
from hami_web.reservations.models import MigReservation, Phase


class Reservations(ListView):
    """Reservations, live and over; ``at`` gives those of one moment."""

    serializer_class = shapes.ReservationSerializer
    namespace_column = "namespace"
    filters = (
        *by_text("namespace"),
        *by_text("pod"),
        *by_text("pod_uid"),
        *by_text("node"),
        *by_text("gpu_uuid"),
        *by_text("profile"),
        *by_choice("phase", Phase.values),
        *by_time("reserved_at"),
        *by_time("released_at"),
        by_flag("live", lambda rows, value: rows.filter(released_at__isnull=value)),
        by_search("namespace", "pod", "node", "gpu_uuid", "profile"),
        Filter(
            "at", parse_moment, lambda rows, value: rows.filter(selectors.there_at(value)), MOMENT
        ),
    )
    ordering = ("reserved_at", "released_at", "namespace", "pod", "gpu_uuid", "profile")

    def rows(self) -> QuerySet[MigReservation]:
        """Newest first."""
        return MigReservation.objects.all()
