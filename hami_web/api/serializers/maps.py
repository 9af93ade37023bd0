"""Shape of the map of one GPU."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class IntervalSerializer(serializers.Serializer[Any]):
    """Memory slices in one state: free, blocked, a phase, or unavailable to the caller."""

    start = serializers.IntegerField()
    size = serializers.IntegerField()
    state = serializers.CharField()
    profile = serializers.CharField()
    namespace = serializers.CharField()
    pod = serializers.CharField()
    detail = serializers.CharField()


class GpuMapSerializer(serializers.Serializer[Any]):
    """All memory slices of a GPU, each once but for conflicting reservations."""

    uuid = serializers.CharField()
    node = serializers.CharField()
    memory_slices = serializers.IntegerField()
    intervals = IntervalSerializer(many=True)


class MappedGpuSerializer(serializers.Serializer[Any]):
    """A GPU with all its memory slices; ``closed`` is why it takes no new work, or empty."""

    uuid = serializers.CharField()
    index = serializers.IntegerField()
    model = serializers.CharField()
    memory_slices = serializers.IntegerField()
    closed = serializers.CharField()
    intervals = IntervalSerializer(many=True)


class MappedNodeSerializer(serializers.Serializer[Any]):
    """A node with its GPUs by index."""

    name = serializers.CharField()
    closed = serializers.CharField()
    unschedulable = serializers.BooleanField()
    gpus = MappedGpuSerializer(many=True)


class ClusterMapSerializer(serializers.Serializer[Any]):
    """Every node of the cluster, by name."""

    nodes = MappedNodeSerializer(many=True)
