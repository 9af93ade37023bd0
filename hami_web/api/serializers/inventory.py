"""Shapes of nodes, GPUs and profiles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from hami_web.api.rows import field_names, read_rows
from hami_web.api.serializers.hiding import Hiding
from hami_web.inventory.models import BlockedInterval, BlockedState, Gpu, GpuState, Node, Profile
from hami_web.inventory.selectors import profile_names


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

    _profiles: dict[int, list[str]] | None = None
    _blocked: dict[int, list[dict[str, Any]]] | None = None

    node = serializers.CharField(source="node_name")
    profiles = serializers.SerializerMethodField()
    blocked = serializers.SerializerMethodField()

    class Meta:
        model = Gpu
        fields = (
            *("uuid", "node", "index", "model", "memory_mib", "memory_slices", "numa", "mode"),
            *("healthy", "cordoned", "closed", "profiles", "blocked", "changed_at"),
        )

    def get_profiles(self, gpu: Gpu | GpuState) -> list[str]:
        """Names of the profiles, smallest first."""
        if self._profiles is None:
            self._profiles = profile_names()
        return self._profiles.get(gpu.profile_set_id, [])

    @extend_schema_field(BlockedSerializer(many=True))
    def get_blocked(self, gpu: Gpu | GpuState) -> list[dict[str, Any]]:
        """Blocked intervals, read for all GPUs at once: there are few."""
        if isinstance(gpu, GpuState):
            return self._shown(gpu.blocked)
        if self._blocked is None:
            rows = list(BlockedInterval.objects.all())
            self._blocked = {}
            for row, item in zip(rows, self._shown(rows), strict=True):
                self._blocked.setdefault(row.gpu_id, []).append(item)
        return self._blocked.get(gpu.id, [])

    def _shown(self, rows: Iterable[BlockedInterval | BlockedState]) -> list[dict[str, Any]]:
        serializer = BlockedSerializer(context=self.context)
        return read_rows(rows, serializer, field_names(BlockedSerializer))


class ProfileSerializer(serializers.ModelSerializer[Profile]):
    """A profile of one list of profiles; ``gpus`` is how many live GPUs offer it."""

    gpus = serializers.IntegerField(read_only=True)

    class Meta:
        model = Profile
        fields = (
            *("name", "memory_mib", "core_percent", "compute_slices", "memory_slices"),
            *("placements", "instance_limit", "attribute", "gpus"),
        )
