"""Use and fragmentation, now and over time."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from hami_web.api.governed import Governed
from hami_web.api.listing import ListView
from hami_web.api.parameters import by_flag, by_text, by_time, check_known
from hami_web.api.serializers import history as shapes
from hami_web.history.models import Sample
from hami_web.history.samples import cluster_fragmentation


class Samples(ListView):
    """Use and fragmentation over time, newest first."""

    serializer_class = shapes.SampleSerializer
    filters = (
        *by_text("node"),
        by_flag("cluster", lambda rows, value: rows.filter(node="") if value else rows),
        *by_time("at"),
    )
    ordering = ("at", "node")

    def rows(self) -> QuerySet[Sample]:
        """Of nodes and of the cluster."""
        return Sample.objects.all()


class FragmentationNow(Governed, GenericAPIView[Any]):
    """Fragmentation of this moment by the core's own measure, and the room for each profile."""

    serializer_class = shapes.FragmentationSerializer

    def get(self, request: Request) -> Response:
        """Of the whole cluster."""
        check_known(request, ("format",))
        return Response(self.get_serializer(cluster_fragmentation()).data)
