"""Bodies and answers of what changes something."""

from __future__ import annotations

from typing import Any

from django.core.validators import RegexValidator
from rest_framework import serializers

from hami_web.api.bodies import BodySerializer, Text
from hami_web.migration.runs import NODE_NAME

NOTE_MAX = 1000
NODE_MAX = 253


class EmptyBody(BodySerializer):
    """Nothing is asked."""


class StartCheckBody(BodySerializer):
    """Which node to look at; all without one."""

    node = Text(
        default="",
        allow_blank=True,
        max_length=NODE_MAX,
        validators=[RegexValidator(NODE_NAME)],
        help_text="the name of the one node to look at, or empty for all",
    )


class CordonBody(BodySerializer):
    """Why, for the audit log."""

    reason = Text(
        default="",
        allow_blank=True,
        max_length=NOTE_MAX,
        help_text=f"a text of at most {NOTE_MAX} characters for the audit log",
    )


class CordonSerializer(serializers.Serializer[Any]):
    """How the GPU is now; ``changed`` is false where it was so already."""

    uuid = serializers.CharField()
    node = serializers.CharField()
    cordoned = serializers.BooleanField()
    changed = serializers.BooleanField()


class AcknowledgeBody(BodySerializer):
    """What the others should know."""

    note = Text(
        default="",
        allow_blank=True,
        max_length=NOTE_MAX,
        help_text=f"a text of at most {NOTE_MAX} characters",
    )
