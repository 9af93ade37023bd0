"""Shapes of a question about Pods that do not exist yet, and of its answer."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from hami_web.api.bodies import BodySerializer, Flag, Text, WholeNumber
from hami_web.core.request import DEVICES_MAX
from hami_web.core.wire import INT32_MAX

TEXT_MAX = 253


class Word(Text):
    """A text that the Pod's annotation can hold in a list."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if "," in text:
            self.fail("invalid")
        return text


def _words(allowed: str, most: int = 64) -> serializers.ListField:
    return serializers.ListField(
        child=Word(max_length=TEXT_MAX, help_text=allowed),
        required=False,
        default=list,
        max_length=most,
        help_text=f"a list of at most {most}: {allowed}",
    )


class DeviceFields(BodySerializer):
    """What each device of a container must offer; without memory, the largest profile."""

    devices = WholeNumber(
        default=1,
        min_value=1,
        max_value=DEVICES_MAX,
        help_text=f"nvidia.com/gpu of the container: a whole number in 1…{DEVICES_MAX}",
    )
    memory_mib = WholeNumber(
        required=False,
        min_value=1,
        max_value=INT32_MAX,
        help_text=f"nvidia.com/gpumem in MiB: a whole number in 1…{INT32_MAX}",
    )
    memory_percent = WholeNumber(
        required=False,
        min_value=1,
        max_value=100,
        help_text="nvidia.com/gpumem-percentage: a whole number in 1…100; memory_mib wins over it",
    )
    cores = WholeNumber(
        required=False,
        min_value=1,
        max_value=100,
        help_text="nvidia.com/gpucores: a whole number in 1…100",
    )


class WhatIfBody(DeviceFields):
    """A Pod as its manifest could ask, how many of it, and where it may go.

    One container is described here itself, several in ``containers``.
    """

    containers = serializers.ListField(
        child=DeviceFields(),
        required=False,
        max_length=16,
        min_length=1,
        help_text="a list of 1…16 objects with devices, memory_mib, memory_percent, cores; "
        "instead of the same fields beside it",
    )
    count = WholeNumber(
        default=1, min_value=1, max_value=100, help_text="equal Pods: a whole number in 1…100"
    )
    profile = Word(
        required=False, max_length=TEXT_MAX, help_text="nvidia.com/mig-profile: a profile's name"
    )
    use_types = _words("part of a GPU model's name, without comma")
    nouse_types = _words("part of a GPU model's name, without comma")
    use_uuids = _words("a GPU's UUID")
    nouse_uuids = _words("a GPU's UUID")
    numa_bind = Flag(default=False, help_text="true, false")
    node_policy = Text(
        required=False,
        max_length=TEXT_MAX,
        help_text="hami.io/node-scheduler-policy: a name that the cluster's policy allows",
    )
    gpu_policy = Text(
        required=False,
        max_length=TEXT_MAX,
        help_text="hami.io/gpu-scheduler-policy: a name that the cluster's policy allows",
    )
    nodes = serializers.ListField(
        child=Text(max_length=TEXT_MAX, help_text="a node's name"),
        required=False,
        min_length=1,
        max_length=5000,
        help_text="a list of 1…5000 names of nodes, the only ones allowed",
    )
    candidates = WholeNumber(
        default=20,
        min_value=0,
        max_value=500,
        help_text="nodes in the answer: a whole number in 0…500",
    )

    def validate_containers(self, value: list[Any]) -> list[Any]:
        """Not beside the fields of a single container."""
        sent = set(self.initial_data) if isinstance(self.initial_data, dict) else set()
        if sent & set(DeviceFields().fields):
            raise serializers.ValidationError("instead of the same fields beside it")
        return value


class PlaceSerializer(serializers.Serializer[Any]):
    """A place for one device."""

    container = serializers.IntegerField()
    device = serializers.IntegerField()
    gpu_uuid = serializers.CharField()
    profile = serializers.CharField()
    start = serializers.IntegerField()
    size = serializers.IntegerField()


class SuggestionSerializer(serializers.Serializer[Any]):
    """A node with a place for each device of one Pod."""

    node = serializers.CharField()
    devices = PlaceSerializer(many=True)


class NodesOfReasonSerializer(serializers.Serializer[Any]):
    """How many nodes have a reason, and the first of them by name."""

    code = serializers.CharField()
    nodes = serializers.IntegerField()
    names = serializers.ListField(child=serializers.CharField())


class BlockerSerializer(serializers.Serializer[Any]):
    """A reservation that would have to end; names that may not be seen are ``unavailable``."""

    namespace = serializers.CharField()
    pod = serializers.CharField()
    profile = serializers.CharField()
    start = serializers.IntegerField()
    size = serializers.IntegerField()
    priority = serializers.IntegerField(allow_null=True)


class BlockersSerializer(serializers.Serializer[Any]):
    """The fewest reservations, all on one GPU, whose end lets the Pod fit.

    ``exact`` is false where not every GPU was tried.
    """

    node = serializers.CharField()
    gpu_uuid = serializers.CharField()
    profile = serializers.CharField(allow_null=True)
    start = serializers.IntegerField(allow_null=True)
    size = serializers.IntegerField(allow_null=True)
    exact = serializers.BooleanField()
    reservations = BlockerSerializer(many=True)


class SmallerSerializer(serializers.Serializer[Any]):
    """The nearest smaller profile that fits now, and where."""

    profile = serializers.CharField()
    memory_mib = serializers.IntegerField()
    node = serializers.CharField()
    gpu_uuid = serializers.CharField()
    start = serializers.IntegerField()
    size = serializers.IntegerField()


class ObstacleSerializer(serializers.Serializer[Any]):
    """Why the next Pod fits nowhere."""

    reasons = NodesOfReasonSerializer(many=True)
    blockers = BlockersSerializer(allow_null=True)
    smaller = SmallerSerializer(allow_null=True)
    fragmented = serializers.BooleanField(allow_null=True)


class WhatIfAnswerSerializer(serializers.Serializer[Any]):
    """Where each Pod would go, in turn; all nodes for the first one, best first; what stops it."""

    fits = serializers.BooleanField()
    as_of = serializers.DateTimeField(allow_null=True)
    placed = SuggestionSerializer(many=True)
    candidates_total = serializers.IntegerField()
    candidates = SuggestionSerializer(many=True)
    obstacle = ObstacleSerializer(allow_null=True)
