"""Shapes of nodes, GPUs and profiles."""

from __future__ import annotations

from rest_framework import serializers

from hami_web.api.serializers.hiding import Hiding
from hami_web.inventory.models import BlockedInterval, Gpu, Node, Profile


class NodeSerializer(Hiding, serializers.ModelSerializer[Node]):
    """A node; ``closed`` is the code why it takes no new work."""

    hidden = ("doubts",)

    class Meta:
        model = Node
        fields = ("name", "closed", "doubts", "unschedulable", "other_owner", "changed_at")


class BlockedSerializer(Hiding, serializers.ModelSerializer[BlockedInterval]):
    """Memory slices that no reservation explains."""

    hidden = ("reason",)

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
