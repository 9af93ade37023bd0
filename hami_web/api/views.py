"""Reads of the mirror. Every view checks its parameters and asks one selector."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from hami_web.api import serializers as shapes
from hami_web.api.gpu_map import draw, intervals
from hami_web.api.listing import ListView
from hami_web.api.parameters import (
    MOMENT,
    Filter,
    by_choice,
    by_flag,
    by_text,
    by_time,
    check_known,
    parse_moment,
)
from hami_web.api.problems import InvalidParameter
from hami_web.history.models import (
    Alert,
    Drift,
    DriftCause,
    Reconciliation,
    Refusal,
    Sample,
)
from hami_web.history.samples import cluster_fragmentation
from hami_web.inventory.models import LIVE, Gpu, Node, Profile
from hami_web.inventory.selectors import live_gpus
from hami_web.reservations import selectors
from hami_web.reservations.models import MigReservation, Phase
from hami_web.reservations.usage import usage_between

USAGE_DAYS_MAX = 366


class Nodes(ListView):
    """Nodes that publish GPUs."""

    serializer_class = shapes.NodeSerializer
    filters = (*by_text("name"), *by_text("closed"))
    ordering = ("name", "changed_at")

    def rows(self) -> QuerySet[Node]:
        """Live ones by name."""
        return Node.objects.filter(LIVE)


class Gpus(ListView):
    """GPUs with their profiles' names and blocked memory slices."""

    serializer_class = shapes.GpuSerializer
    filters = (
        *by_text("uuid"),
        *by_text("node", "node__name"),
        *by_text("model"),
        *by_text("closed"),
        by_flag("healthy", lambda rows, value: rows.filter(healthy=value)),
    )
    ordering = ("uuid", "index", "model", "memory_mib")

    def rows(self) -> QuerySet[Gpu]:
        """Live ones by node and index."""
        return live_gpus()


class GpuMap(APIView):
    """All memory slices of one GPU: reservations, blocked and free ones."""

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, uuid: str) -> Response:
        """As JSON."""
        check_known(request, ("format",))
        gpu, found = _map_of(uuid)
        body = {
            "uuid": gpu.uuid,
            "node": gpu.node.name,
            "memory_slices": gpu.memory_slices,
            "intervals": [{name: getattr(item, name) for name in item.__slots__} for item in found],
        }
        return Response(body)


class GpuDrawing(APIView):
    """The same as a drawing."""

    @extend_schema(responses={(200, "image/svg+xml"): OpenApiTypes.STR})
    def get(self, request: Request, uuid: str) -> HttpResponse:
        """As SVG."""
        check_known(request, ())
        gpu, found = _map_of(uuid)
        return HttpResponse(draw(gpu, found), content_type="image/svg+xml")


def _map_of(uuid: str) -> tuple[Gpu, list[Any]]:
    gpu = get_object_or_404(live_gpus(), uuid=uuid)
    rows = MigReservation.objects.filter(released_at=None, gpu_uuid=uuid).order_by("start", "id")
    return gpu, intervals(gpu, list(rows))


class Profiles(ListView):
    """Profiles that GPUs offer, for each distinct list of profiles."""

    serializer_class = shapes.ProfileSerializer
    filters = by_text("name")
    ordering = ("name", "memory_mib", "compute_slices")

    def rows(self) -> QuerySet[Profile]:
        """Those of live GPUs, smallest first."""
        live = Count("profile_set__gpus", filter=Q(profile_set__gpus__gone_at=None))
        return Profile.objects.annotate(gpus=live).filter(gpus__gt=0)


class Reservations(ListView):
    """Reservations, live and over; ``at`` gives those of one moment."""

    serializer_class = shapes.ReservationSerializer
    filters = (
        *by_text("namespace"),
        *by_text("pod"),
        *by_text("pod_uid"),
        *by_text("node"),
        *by_text("gpu_uuid"),
        *by_text("profile"),
        *by_choice("phase", Phase.values),
        *by_time("reserved_at"),
        *by_time("released_at"),
        by_flag("live", lambda rows, value: rows.filter(released_at__isnull=value)),
        Filter(
            "at", parse_moment, lambda rows, value: rows.filter(selectors.there_at(value)), MOMENT
        ),
    )
    ordering = ("reserved_at", "released_at", "namespace", "pod", "gpu_uuid", "profile")

    def rows(self) -> QuerySet[MigReservation]:
        """Newest first."""
        return MigReservation.objects.all()


class Why(ListView):
    """What the scheduler said of a Pod that found no node, newest first."""

    serializer_class = shapes.RefusalSerializer
    ordering = ("first_at", "last_at")

    def rows(self) -> QuerySet[Refusal]:
        """Of the Pod in the address."""
        return Refusal.objects.filter(
            namespace=self.kwargs.get("namespace", ""), pod=self.kwargs.get("pod", "")
        )


class Alerts(ListView):
    """Conditions that someone should look at, newest first."""

    serializer_class = shapes.AlertSerializer
    filters = (
        *by_text("code"),
        *by_text("namespace"),
        by_flag("open", lambda rows, value: rows.filter(resolved_at__isnull=value)),
        *by_time("raised_at"),
    )
    ordering = ("raised_at", "code")

    def rows(self) -> QuerySet[Alert]:
        """Open and resolved."""
        return Alert.objects.all()


class Drifts(ListView):
    """Corrections of the mirror, newest first."""

    serializer_class = shapes.DriftSerializer
    filters = (
        *by_choice("cause", DriftCause.values),
        *by_text("kind"),
        *by_text("entity"),
        *by_time("at"),
    )
    ordering = ("at",)

    def rows(self) -> QuerySet[Drift]:
        """All that are kept."""
        return Drift.objects.all()


class Reconciliations(ListView):
    """Comparisons of the mirror with the cluster, newest first."""

    serializer_class = shapes.ReconciliationSerializer
    filters = by_time("began_at")
    ordering = ("began_at", "corrections")

    def rows(self) -> QuerySet[Reconciliation]:
        """All that are kept."""
        return Reconciliation.objects.all()


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


class FragmentationNow(GenericAPIView[Any]):
    """Fragmentation of this moment by the core's own measure, and the room for each profile."""

    serializer_class = shapes.FragmentationSerializer

    def get(self, request: Request) -> Response:
        """Of the whole cluster."""
        check_known(request, ("format",))
        return Response(self.get_serializer(cluster_fragmentation()).data)


class UsageHours(GenericAPIView[Any]):
    """GPU-hours by namespace and profile over a range of time, at most 366 days."""

    serializer_class = shapes.UsageSerializer

    @extend_schema(
        parameters=[
            OpenApiParameter("from", str, required=True, description=MOMENT),
            OpenApiParameter("to", str, description=f"{MOMENT}; default now"),
        ]
    )
    def get(self, request: Request) -> Response:
        """One row for each namespace and profile."""
        check_known(request, ("from", "to", "format"))
        start = parse_moment("from", request.query_params.get("from", ""))
        text = request.query_params.get("to")
        end = datetime.now(UTC) if text is None else parse_moment("to", text)
        if not timedelta(0) < end - start <= timedelta(days=USAGE_DAYS_MAX):
            shown = text or end.isoformat()
            raise InvalidParameter("to", shown, f"after from, at most {USAGE_DAYS_MAX} days")
        found = usage_between(start, end)
        return Response({"results": self.get_serializer(found, many=True).data})
