"""Forget what is older than history is kept."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Model, QuerySet

from hami_web.history.models import (
    Alert,
    Decision,
    Explanation,
    Reconciliation,
    Refusal,
    Sample,
)
from hami_web.inventory.models import (
    BlockedState,
    Gpu,
    GpuState,
    Node,
    NodeState,
    ProfileSet,
)
from hami_web.inventory.writing import writing
from hami_web.reservations.models import MigReservation, ReservationDoubt

CHUNK = 1000
"""Rows of one transaction, so that the live feed never waits long."""


def prune(before: datetime) -> int:
    """Delete what ended before a moment; returns how many rows. Nothing live is ever deleted."""
    old: tuple[QuerySet[Model], ...] = (
        MigReservation.objects.filter(released_at__lt=before),
        ReservationDoubt.objects.filter(ended_at__lt=before),
        Sample.objects.filter(at__lt=before),
        Decision.objects.filter(last_at__lt=before),
        Explanation.objects.filter(decisions=None),
        Refusal.objects.filter(last_at__lt=before),
        Alert.objects.filter(resolved_at__lt=before),
        Reconciliation.objects.filter(began_at__lt=before),
        NodeState.objects.filter(ended_at__lt=before),
        GpuState.objects.filter(ended_at__lt=before),
        BlockedState.objects.filter(ended_at__lt=before),
        Gpu.objects.filter(gone_at__lt=before),
        Node.objects.filter(gone_at__lt=before, gpus=None, gpu_states=None),
        ProfileSet.objects.filter(gpus=None, gpu_states=None),
    )
    return sum(_delete(rows) for rows in old)


def _delete(rows: QuerySet[Model]) -> int:
    deleted = 0
    while True:
        with writing():
            keys = list(rows.order_by("pk").values_list("pk", flat=True)[:CHUNK])
            rows.model._base_manager.filter(pk__in=keys).delete()  # noqa: SLF001  # Django's documented manager
        deleted += len(keys)
        if len(keys) < CHUNK:
            return deleted
