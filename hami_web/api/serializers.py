"""Shapes of what is read. Memory in MiB, times in UTC, placements in memory slices."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from hami_web.history.models import Alert, Drift, Reconciliation, Refusal, Sample
from hami_web.inventory.models import BlockedInterval, Gpu, Node, Profile
from hami_web.reservations.models import MigReservation


class NodeSerializer(serializers.ModelSerializer[Node]):
    """A node; ``closed`` is the code why it takes no new work."""

    class Meta:
        model = Node
        fields = ("name", "closed", "doubts", "unschedulable", "changed_at")


class BlockedSerializer(serializers.ModelSerializer[BlockedInterval]):
    """Memory slices that no reservation explains."""

    class Meta:
        model = BlockedInterval
        fields = ("start", "size", "reason", "since")


class GpuSerializer(serializers.ModelSerializer[Gpu]):
    """A GPU without what it holds; its map has that."""

    node = serializers.CharField(source="node.name")
    profiles = serializers.SerializerMethodField()
    blocked = BlockedSerializer(many=True)

    class Meta:
        model = Gpu
        fields = (
            *("uuid", "node", "index", "model", "memory_mib", "memory_slices", "numa", "mode"),
            *("healthy", "cordoned", "closed", "profiles", "blocked", "changed_at"),
        )

    def get_profiles(self, gpu: Gpu) -> list[str]:
        """Names of the profiles, smallest first."""
        return [profile.name for profile in gpu.profile_set.profiles.all()]


class ProfileSerializer(serializers.ModelSerializer[Profile]):
    """A profile of one list of profiles; ``gpus`` is how many live GPUs offer it."""

    gpus = serializers.IntegerField(read_only=True)

    class Meta:
        model = Profile
        fields = (
            *("name", "memory_mib", "core_percent", "compute_slices", "memory_slices"),
            *("placements", "instance_limit", "attribute", "gpus"),
        )


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


class RefusalSerializer(serializers.ModelSerializer[Refusal]):
    """What the scheduler said of a Pod, and when."""

    class Meta:
        model = Refusal
        fields = ("namespace", "pod", "pod_uid", "message", "first_at", "last_at", "times")


class AlertSerializer(serializers.ModelSerializer[Alert]):
    """An alert; open while ``resolved_at`` is null."""

    class Meta:
        model = Alert
        fields = (
            *("id", "code", "subject", "namespace", "text"),
            *("raised_at", "seen_at", "resolved_at"),
        )


class DriftSerializer(serializers.ModelSerializer[Drift]):
    """A correction of the mirror with its cause."""

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


class UsageSerializer(serializers.Serializer[Any]):
    """GPU-hours of a namespace and profile; instances on GPUs of unknown size count apart."""

    namespace = serializers.CharField()
    profile = serializers.CharField()
    reservations = serializers.IntegerField()
    instance_hours = serializers.FloatField()
    gpu_hours = serializers.FloatField()
