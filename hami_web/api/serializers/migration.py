"""Shapes of readiness checks."""

from __future__ import annotations

from rest_framework import serializers

from hami_web.api.serializers.hiding import Hiding
from hami_web.migration.models import Finding, MigrationRun, NodeReadiness


class MigrationRunSerializer(serializers.ModelSerializer[MigrationRun]):
    """A check, and who asked for it."""

    class Meta:
        model = MigrationRun
        fields = (
            *("id", "state", "node", "requested_at", "requested_by", "started_at", "finished_at"),
            *("error", "part", "parts_done", "parts", "cancelled_by"),
        )


class NodeReadinessSerializer(serializers.ModelSerializer[NodeReadiness]):
    """What a check says of one node."""

    class Meta:
        model = NodeReadiness
        fields = ("node", "readiness", "checked_at")


class FindingSerializer(Hiding, serializers.ModelSerializer[Finding]):
    """A finding; its object and evidence may be Pods of any namespace."""

    hidden = ("subject", "evidence", "mend")
    consequence = serializers.CharField(help_text="in the language of the request")
    mend = serializers.CharField(help_text="in the language of the request")

    class Meta:
        model = Finding
        fields = (
            *("id", "node", "severity", "code", "subject", "evidence", "consequence"),
            "mend",
        )
