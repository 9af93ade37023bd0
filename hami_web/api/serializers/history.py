"""Shapes of decisions, alerts, corrections and samples."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from hami_web.api.serializers.hiding import Hiding
from hami_web.history.models import Alert, Drift, Reconciliation, Refusal, Sample


class RefusalSerializer(serializers.ModelSerializer[Refusal]):
    """What the scheduler said of a Pod, and when."""

    class Meta:
        model = Refusal
        fields = ("namespace", "pod", "pod_uid", "message", "first_at", "last_at", "times")


class AlertSerializer(Hiding, serializers.ModelSerializer[Alert]):
    """An alert with who knows of it; its condition held last at ``seen_at``."""

    hidden = ("text",)

    def hides(self, instance: Alert) -> bool:
        """Those of no namespace tell what agents say; the others lie where the caller sees."""
        return not instance.namespace

    class Meta:
        model = Alert
        fields = (
            *("id", "code", "subject", "namespace", "text", "state", "raised_at", "seen_at"),
            *("acknowledged_at", "acknowledged_by", "note", "resolved_at", "reopened"),
        )


class DriftSerializer(Hiding, serializers.ModelSerializer[Drift]):
    """A correction of the mirror with its cause."""

    hidden = ("key", "detail")

    class Meta:
        model = Drift
        fields = ("id", "at", "cause", "kind", "entity", "key", "detail")


class ReconciliationSerializer(serializers.ModelSerializer[Reconciliation]):
    """A comparison of the mirror with a complete list."""

    class Meta:
        model = Reconciliation
        fields = ("id", "began_at", "finished_at", "nodes", "pods", "corrections")


class SampleSerializer(serializers.ModelSerializer[Sample]):
    """Use at one moment; ``node`` is empty for the whole cluster."""

    class Meta:
        model = Sample
        fields = (
            *("at", "node", "gpus", "memory_slices", "reserved_memory_slices"),
            *("realized_memory_slices", "blocked_memory_slices", "fragmentation"),
        )


class RoomSerializer(serializers.Serializer[Any]):
    """Further instances of a profile: now, and if the free memory slices lay together."""

    profile = serializers.CharField()
    memory_mib = serializers.IntegerField()
    now = serializers.IntegerField()
    packed = serializers.IntegerField()


class FragmentationSerializer(serializers.Serializer[Any]):
    """The share of the room that is lost, 0 … 1, over GPUs that take new work."""

    value = serializers.FloatField()
    rooms = RoomSerializer(many=True)


class VitalSerializer(serializers.Serializer[Any]):
    """A part of the worker; ``at`` is null where it never worked."""

    part = serializers.CharField()
    at = serializers.DateTimeField(allow_null=True)
    silent = serializers.BooleanField()
