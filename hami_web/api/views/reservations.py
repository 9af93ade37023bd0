"""Reservations of any moment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db.models import QuerySet

from hami_web.api.listing import ListView
from hami_web.api.parameters import (
    AT,
    by_choice,
    by_flag,
    by_search,
    by_text,
    by_time,
)
from hami_web.api.serializers import reservations as shapes
from hami_web.reservations import selectors
from hami_web.reservations.models import LIVE, OVER, MigReservation, Phase


def _in_phases(rows: QuerySet[Any], value: str | list[str]) -> QuerySet[Any]:
    """Of now, or of the moment asked about; for phases of what is live no history is looked at."""
    phases = [value] if isinstance(value, str) else value
    if "phase_then" in rows.query.annotations:
        return rows.filter(phase_then__in=phases)
    rows = rows.filter(phase__in=phases)
    return rows if set(phases) & set(OVER) else rows.filter(LIVE)


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
        *(replace(item, apply=_in_phases) for item in by_choice("phase", Phase.values)),
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
