"""Shapes of a drain plan."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class SpotSerializer(serializers.Serializer[Any]):
    """A placement on a GPU."""

    node = serializers.CharField()
    gpu_uuid = serializers.CharField()
    start = serializers.IntegerField()
    size = serializers.IntegerField()


class HeldSerializer(serializers.Serializer[Any]):
    """A reservation of a Pod."""

    gpu_uuid = serializers.CharField()
    profile = serializers.CharField()
    start = serializers.IntegerField()
    size = serializers.IntegerField()


class MoveSerializer(serializers.Serializer[Any]):
    """A Pod to move; ``homes`` are empty where no other place was found for it."""

    namespace = serializers.CharField()
    pod = serializers.CharField()
    node = serializers.CharField()
    priority = serializers.IntegerField(allow_null=True)
    reservations = HeldSerializer(many=True)
    homes = SpotSerializer(many=True)


class LeavingSerializer(HeldSerializer):
    """A reservation whose Pod is being deleted already."""

    namespace = serializers.CharField()
    pod = serializers.CharField()


class PlannedIntervalSerializer(serializers.Serializer[Any]):
    """Memory slices before or after; ``state`` is a phase, ``wanted`` or ``moved``."""

    start = serializers.IntegerField()
    size = serializers.IntegerField()
    state = serializers.CharField()
    profile = serializers.CharField()
    namespace = serializers.CharField()
    pod = serializers.CharField()


class GpuChangeSerializer(serializers.Serializer[Any]):
    """A GPU that the plan touches."""

    node = serializers.CharField()
    gpu_uuid = serializers.CharField()
    before = PlannedIntervalSerializer(many=True)
    after = PlannedIntervalSerializer(many=True)


class DrainPlanSerializer(serializers.Serializer[Any]):
    """The fewest Pods to move so that placements of a profile become free.

    ``possible`` is false where no moves that are allowed are enough; ``exact`` is false where not
    all sets of Pods were tried. ``free`` are the placements that are free already. ``commands``
    are for a person to read and run.
    """

    profile = serializers.CharField()
    count = serializers.IntegerField()
    as_of = serializers.DateTimeField(allow_null=True)
    possible = serializers.BooleanField()
    exact = serializers.BooleanField()
    free = serializers.IntegerField()
    protected = serializers.IntegerField()
    placements = SpotSerializer(many=True)
    moves = MoveSerializer(many=True)
    leaving = LeavingSerializer(many=True)
    gpus = GpuChangeSerializer(many=True)
    commands = serializers.ListField(child=serializers.CharField())
