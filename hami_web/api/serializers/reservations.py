"""Shapes of reservations and their use."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from hami_web.reservations.models import MigReservation


class ReservationSerializer(serializers.ModelSerializer[MigReservation]):
    """A reservation with the time of each step, and how many seconds the steps took."""

    phase = serializers.SerializerMethodField()
    hold_s = serializers.FloatField(source="steps_s.hold_s", allow_null=True)
    realize_s = serializers.FloatField(source="steps_s.realize_s", allow_null=True)
    start_s = serializers.FloatField(source="steps_s.start_s", allow_null=True)
    terminate_s = serializers.FloatField(source="steps_s.terminate_s", allow_null=True)
    life_s = serializers.FloatField(source="steps_s.life_s", allow_null=True)

    class Meta:
        model = MigReservation
        fields = (
            *("id", "namespace", "pod", "pod_uid", "owner", "node"),
            *("container_index", "device_index"),
            *("gpu_uuid", "profile", "start", "size", "memory_mib", "mig_uuid"),
            *("gpu_instance_id", "compute_instance_id", "phase"),
            *("held_at", "reserved_at", "realized_at", "started_at"),
            *("terminating_at", "released_at"),
            *("hold_s", "realize_s", "start_s", "terminate_s", "life_s"),
        )

    def get_phase(self, row: MigReservation) -> str:
        """Of now, or of the moment asked about."""
        return str(getattr(row, "phase_then", row.phase))


class UsageSerializer(serializers.Serializer[Any]):
    """GPU-hours of a namespace and profile; instances on GPUs of unknown size count apart."""

    namespace = serializers.CharField()
    profile = serializers.CharField()
    reservations = serializers.IntegerField()
    instance_hours = serializers.FloatField()
    gpu_hours = serializers.FloatField()
