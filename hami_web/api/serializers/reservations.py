"""Shapes of reservations and their use."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from hami_web.reservations.models import MigReservation


class ReservationSerializer(serializers.ModelSerializer[MigReservation]):
    """A reservation with the time of each step."""

    class Meta:
        model = MigReservation
        fields = (
            *("id", "namespace", "pod", "pod_uid", "node", "container_index", "device_index"),
            *("gpu_uuid", "profile", "start", "size", "memory_mib", "mig_uuid"),
            *("gpu_instance_id", "compute_instance_id", "phase"),
            *("reserved_at", "realized_at", "terminating_at", "released_at"),
        )


class UsageSerializer(serializers.Serializer[Any]):
    """GPU-hours of a namespace and profile; instances on GPUs of unknown size count apart."""

    namespace = serializers.CharField()
    profile = serializers.CharField()
    reservations = serializers.IntegerField()
    instance_hours = serializers.FloatField()
    gpu_hours = serializers.FloatField()
