"""What the mirror had wrong."""

from __future__ import annotations

from django.db.models import QuerySet

from hami_web.api.listing import ListView
from hami_web.api.parameters import by_choice, by_number, by_text, by_time
from hami_web.api.serializers import history as shapes
from hami_web.history.models import Drift, DriftCause, Reconciliation


class Drifts(ListView):
    """Corrections of the mirror, newest first."""

    serializer_class = shapes.DriftSerializer
    filters = (
        *by_choice("cause", DriftCause.values),
        *by_text("kind"),
        by_number("reconciliation"),
        *by_text("entity"),
        *by_time("at"),
    )
    ordering = ("at",)

    def rows(self) -> QuerySet[Drift]:
        """All that are kept."""
        return Drift.objects.all()


class Reconciliations(ListView):
    """Comparisons of the mirror with the cluster, newest first."""

    serializer_class = shapes.ReconciliationSerializer
    filters = by_time("began_at")
    ordering = ("began_at", "corrections")

    def rows(self) -> QuerySet[Reconciliation]:
        """All that are kept."""
        return Reconciliation.objects.all()
