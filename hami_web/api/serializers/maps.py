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
