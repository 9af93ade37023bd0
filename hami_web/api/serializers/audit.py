"""Shapes of the audit log."""

from __future__ import annotations

from rest_framework import serializers

from hami_web.access.models import AuditEntry


class AuditEntrySerializer(serializers.ModelSerializer[AuditEntry]):
    """Who did what, from where, on which object, with what result."""

    class Meta:
        model = AuditEntry
        fields = (
            *("id", "at", "actor", "source", "role", "address", "verb", "kind", "namespace"),
            *("name", "before", "after", "outcome", "detail", "request_id"),
        )
