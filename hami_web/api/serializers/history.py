"""Shapes of decisions, alerts, corrections and samples."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from hami_web.api.explanations import masked_explanation
from hami_web.api.serializers.hiding import Hiding
from hami_web.history.decisions import Said
from hami_web.history.models import Alert, Decision, Drift, Outcome, Reconciliation, Sample


class DecisionSerializer(Hiding, serializers.ModelSerializer[Decision]):
    """What was decided for a Pod, how often, from when to when."""

    hidden = ("message",)

    def hides(self, instance: Decision) -> bool:
        """Only a failed Binding may tell of another Pod, which has the node."""
        return instance.outcome == Outcome.BIND_FAILED

    class Meta:
        model = Decision
        fields = (
            *("id", "namespace", "pod", "pod_uid", "outcome", "node", "code", "message"),
            *("times", "first_at", "last_at"),
        )


class WhySerializer(Hiding, serializers.Serializer[Any]):
    """What was said of a Pod: by the extender, with reasons by node and GPU, or by kube-scheduler.

    ``explanation`` is the extender's, null where it had none; what it tells of Pods that the
    caller may not see is ``unavailable``.
    """

    hidden = ("message",)

    def hides(self, instance: Said) -> bool:
        """Only a failed Binding may tell of another Pod, which has the node."""
        return instance.outcome == Outcome.BIND_FAILED

    def to_representation(self, instance: Said) -> Any:
        """The row, without names that are not for the caller."""
        shown = super().to_representation(instance)
        body, seen = shown["explanation"], self.context.get("visibility")
        if body is not None:
            shown["explanation"] = None if seen is None else masked_explanation(body, seen)
        return shown

    said_by = serializers.CharField()
    pod_uid = serializers.CharField()
    outcome = serializers.CharField()
    node = serializers.CharField()
    code = serializers.CharField()
    message = serializers.CharField()
    times = serializers.IntegerField()
    first_at = serializers.DateTimeField()
    last_at = serializers.DateTimeField()
    explanation = serializers.JSONField(allow_null=True)


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


class ChangeSerializer(Hiding, serializers.Serializer[Any]):
    """One change; fields that do not belong to its entity are empty or null."""

    hidden = ("detail",)

    def hides(self, instance: Any) -> bool:
        """Why memory slices are blocked is the agent's text."""
        return bool(instance.entity == "blocked")

    at = serializers.DateTimeField()
    entity = serializers.CharField()
    change = serializers.CharField()
    namespace = serializers.CharField()
    pod = serializers.CharField()
    node = serializers.CharField()
    gpu_uuid = serializers.CharField()
    profile = serializers.CharField()
    start = serializers.IntegerField(allow_null=True)
    size = serializers.IntegerField(allow_null=True)
    detail = serializers.CharField()
