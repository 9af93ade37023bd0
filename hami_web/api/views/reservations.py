"""Reservations of any moment."""

from __future__ import annotations

from dataclasses import replace

from django.db.models import QuerySet

from hami_web.api.listing import ListView
from hami_web.api.parameters import (
    AT,
    Filter,
    by_choice,
    by_flag,
    by_search,
    by_text,
    by_time,
)
from hami_web.api.serializers import reservations as shapes
from hami_web.reservations import selectors
from hami_web.reservations.models import MigReservation, Phase


def _by_phase() -> tuple[Filter, ...]:
    """Of now, or of the moment asked about."""

    def column(rows: QuerySet[MigReservation]) -> str:
        return "phase_then" if "phase_then" in rows.query.annotations else "phase"

    one, several = by_choice("phase", Phase.values)
    return (
        replace(one, apply=lambda rows, value: rows.filter(**{column(rows): value})),
        replace(several, apply=lambda rows, value: rows.filter(**{f"{column(rows)}__in": value})),
    )


class Reservations(ListView):
    """Reservations, live and over; ``at`` gives those of one moment, in their phase of then."""

    serializer_class = shapes.ReservationSerializer
    namespace_column = "namespace"
    filters = (
        *by_text("namespace"),
        *by_text("pod"),
        *by_text("pod_uid"),
        *by_text("node"),
        *by_text("gpu_uuid"),
        *by_text("profile"),
        *_by_phase(),
        *by_time("reserved_at"),
        *by_time("released_at"),
        by_flag("live", lambda rows, value: rows.filter(released_at__isnull=value)),
        by_search("namespace", "pod", "node", "gpu_uuid", "profile"),
        AT,
    )
    ordering = ("reserved_at", "released_at", "namespace", "pod", "gpu_uuid", "profile")

    def rows(self) -> QuerySet[MigReservation]:
        """Newest first."""
        moment = self.moment()
        rows = MigReservation.objects.all()
        return rows if moment is None else selectors.as_of(rows, moment)
