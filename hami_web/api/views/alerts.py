"""Conditions that someone should look at."""

from __future__ import annotations

from django.db.models import QuerySet

from hami_web.api.listing import ListView
from hami_web.api.parameters import by_choice, by_flag, by_search, by_text, by_time
from hami_web.api.serializers import history as shapes
from hami_web.history.models import Alert, AlertState


class Alerts(ListView):
    """Conditions that someone should look at, newest first."""

    serializer_class = shapes.AlertSerializer
    namespace_column = "namespace"
    filters = (
        *by_text("code"),
        *by_text("subject"),
        *by_text("namespace"),
        *by_choice("state", AlertState.values),
        by_flag("open", lambda rows, value: rows.filter(resolved_at__isnull=value)),
        by_search("code", "subject", "namespace"),
        *by_time("raised_at"),
    )
    ordering = ("raised_at", "code")

    def rows(self) -> QuerySet[Alert]:
        """Open and resolved."""
        return Alert.objects.all()
