"""What was decided for Pods, and why."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from hami_web.api.described import parameter
from hami_web.api.governed import Governed
from hami_web.api.listing import ListView
from hami_web.api.pages import Rows
from hami_web.api.parameters import (
    LIMIT_DEFAULT,
    LIMIT_MAX,
    by_choice,
    by_search,
    by_text,
    by_time,
    check_known,
    parse_whole,
    whole_schema,
)
from hami_web.api.problems import NotVisible
from hami_web.api.serializers import history as shapes
from hami_web.history.decisions import said_of
from hami_web.history.models import Decision, Outcome


class Decisions(ListView):
    """What the extender decided, newest first; each set of reasons of a Pod once."""

    serializer_class = shapes.DecisionSerializer
    namespace_column = "namespace"
    filters = (
        *by_text("namespace"),
        *by_text("pod"),
        *by_text("pod_uid"),
        *by_text("node"),
        *by_text("code"),
        *by_choice("outcome", Outcome.values),
        by_search("namespace", "pod", "node", "code"),
        *by_time("first_at"),
        *by_time("last_at"),
    )
    ordering = ("first_at", "last_at", "namespace", "pod", "times")

    def rows(self) -> QuerySet[Decision]:
        """All that are kept."""
        return Decision.objects.all()


class Why(Governed, GenericAPIView[Any]):
    """What was said of one Pod, newest first: by the extender, and by kube-scheduler."""

    serializer_class = shapes.WhySerializer
    pagination_class = Rows

    @extend_schema(
        parameters=[
            parameter(
                "limit", whole_schema(1, LIMIT_MAX, LIMIT_DEFAULT), f"1…{LIMIT_MAX}", LIMIT_DEFAULT
            )
        ]
    )
    def get(self, request: Request, namespace: str, pod: str) -> Response:
        """Also of a Pod that is gone. Raises NotVisible, whether it exists or not."""
        check_known(request, ("limit", "format"))
        if not self.visibility.sees(namespace):
            raise NotVisible
        limit = parse_whole(request, "limit", LIMIT_DEFAULT, least=1, most=LIMIT_MAX)
        found = said_of(namespace, pod, limit=limit)
        return Response({"results": self.get_serializer(found, many=True).data})
