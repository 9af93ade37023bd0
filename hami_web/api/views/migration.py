"""Readiness checks."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404

from hami_web.api.listing import ListView
from hami_web.api.parameters import by_choice, by_text, by_time
from hami_web.api.serializers import migration as shapes
from hami_web.migration.models import (
    Finding,
    MigrationRun,
    NodeReadiness,
    Readiness,
    RunState,
)
from hami_web.migration.severity import Severity


class MigrationRuns(ListView):
    """Checks, newest first."""

    serializer_class = shapes.MigrationRunSerializer
    filters = (
        *by_choice("state", RunState.values),
        *by_text("requested_by"),
        *by_text("node"),
        *by_time("requested_at"),
    )
    ordering = ("requested_at", "finished_at")

    def rows(self) -> QuerySet[MigrationRun]:
        """All that are kept."""
        return MigrationRun.objects.all()


class RunNodes(ListView):
    """What a check says of each node."""

    serializer_class = shapes.NodeReadinessSerializer
    filters = (*by_text("node"), *by_choice("readiness", Readiness.values))
    ordering = ("node", "readiness")

    def rows(self) -> QuerySet[NodeReadiness]:
        """Of the check in the address."""
        return NodeReadiness.objects.filter(run=_run(self.kwargs))


class RunFindings(ListView):
    """What a check found, by node."""

    serializer_class = shapes.FindingSerializer
    filters = (*by_text("node"), *by_text("code"), *by_choice("severity", Severity.values))
    ordering = ("node", "severity", "code")

    def rows(self) -> QuerySet[Finding]:
        """Of the check in the address."""
        return Finding.objects.filter(run=_run(self.kwargs))


def _run(address: dict[str, Any]) -> MigrationRun | None:
    """None while the schema is made, which knows no address."""
    return get_object_or_404(MigrationRun, pk=address["run"]) if "run" in address else None
