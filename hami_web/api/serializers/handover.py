"""Shapes of take-overs of nodes, and bodies of what changes them."""

from __future__ import annotations

from rest_framework import serializers

from hami_web.api.bodies import BodySerializer, Text
from hami_web.api.serializers.hiding import Hiding
from hami_web.handover.models import HandoverEvent, NodeHandover, ProfileTest
from hami_web.handover.obstacles import decode_obstacles
from hami_web.handover.steps import Direction, Step
from hami_web.handover.wording import mend_of
from hami_web.inventory.models import NAME_MAX


class HandoverSerializer(Hiding, serializers.ModelSerializer[NodeHandover]):
    """A take-over: where it is, what is in the way, and what approving its step would do."""

    hidden = ("obstacles", "would_do")
    direction = serializers.CharField(help_text="forward, or back to who had the node before")
    obstacles = serializers.SerializerMethodField()
    would_do = serializers.JSONField(help_text="what approving the step changes, line by line")

    class Meta:
        model = NodeHandover
        fields = (
            *("id", "node", "node_uid", "direction", "step", "outcome", "started_at"),
            *("started_by", "entered_at", "ended_at", "approved_by", "approved_at"),
            *("regressed_from", "looked_at", "obstacles", "would_do", "revision"),
        )

    def get_obstacles(self, row: NodeHandover) -> list[dict[str, str]]:
        """Each with its code, object, evidence, and what helps, in the language of the request."""
        return [
            {**item.document(), "mend": mend_of(item.code, row.node, item.subject)}
            for item in decode_obstacles(row.obstacles)
        ]


class HandoverEventSerializer(Hiding, serializers.ModelSerializer[HandoverEvent]):
    """One thing that happened."""

    hidden = ("text",)

    class Meta:
        model = HandoverEvent
        fields = ("id", "at", "kind", "step", "actor", "text")


class ProfileTestSerializer(serializers.ModelSerializer[ProfileTest]):
    """The lifecycle test of one profile; ``took_s`` has seconds by state."""

    class Meta:
        model = ProfileTest
        fields = (
            *("id", "model", "profile", "gpu", "attempt", "state", "entered_at"),
            *("place", "error", "took_s"),
        )


class StartBody(BodySerializer):
    """Which node, and where to."""

    node = Text(max_length=NAME_MAX, help_text="the name of a node of the cluster")
    direction = serializers.ChoiceField(
        choices=[item.value for item in Direction],
        default=Direction.FORWARD.value,
        help_text=f"one of {', '.join(Direction)}",
    )


class StepBody(BodySerializer):
    """The step that is meant, so that nobody approves another than they saw."""

    step = serializers.ChoiceField(
        choices=[item.value for item in Step], help_text=f"one of {', '.join(Step)}"
    )
