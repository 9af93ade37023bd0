"""What people and programs did."""

from __future__ import annotations

from django.db.models import QuerySet

from hami_web.access.caller import Source
from hami_web.access.models import AuditEntry, Outcome
from hami_web.access.roles import Verb
from hami_web.api.listing import ListView
from hami_web.api.parameters import by_choice, by_text, by_time
from hami_web.api.serializers import audit as shapes


class Audit(ListView):
    """Entries of the audit log, newest first; for admins."""

    verb = Verb.READ_AUDIT
    serializer_class = shapes.AuditEntrySerializer
    namespace_column = "namespace"
    filters = (
        *by_text("actor"),
        *by_choice("source", list(Source)),
        *by_text("verb"),
        *by_text("kind"),
        *by_text("name"),
        *by_text("namespace"),
        *by_choice("outcome", Outcome.values),
        *by_text("request_id"),
        *by_time("at"),
    )
    ordering = ("at", "actor", "verb")

    def rows(self) -> QuerySet[AuditEntry]:
        """All that are kept."""
        return AuditEntry.objects.all()
