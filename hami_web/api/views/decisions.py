"""What the scheduler said."""

from __future__ import annotations

from django.db.models import QuerySet

from hami_web.api.listing import ListView
from hami_web.api.problems import NotVisible
from hami_web.api.serializers import history as shapes
from hami_web.history.models import Refusal


class Why(ListView):
    """What the scheduler said of a Pod that found no node, newest first."""

    serializer_class = shapes.RefusalSerializer
    namespace_column = "namespace"
    ordering = ("first_at", "last_at")

    def rows(self) -> QuerySet[Refusal]:
        """Of the Pod in the address. Raises NotVisible, whether it exists or not."""
        if not self.visibility.sees(self.kwargs.get("namespace", "")):
            raise NotVisible
        return Refusal.objects.filter(
            namespace=self.kwargs.get("namespace", ""), pod=self.kwargs.get("pod", "")
        )
