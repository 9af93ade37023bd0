"""The memory slices of one GPU, and of all."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from msgspec import structs
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from hami_web.access.visibility import Visibility
from hami_web.api.cluster_map import cluster_map
from hami_web.api.described import moment as a_moment
from hami_web.api.governed import Governed
from hami_web.api.gpu_map import draw, intervals, masked
from hami_web.api.parameters import check_known, parse_moment
from hami_web.api.serializers import maps as shapes
from hami_web.inventory.models import Gpu, GpuState
from hami_web.inventory.selectors import gpus_at, live_gpus
from hami_web.planning.layout import Interval
from hami_web.reservations.models import MigReservation
from hami_web.reservations.selectors import as_of

AT = a_moment("at", ": the GPU as it was then")


class GpuMap(Governed, APIView):
    """All memory slices of one GPU: reservations, blocked and free ones."""

    @extend_schema(responses=shapes.GpuMapSerializer, parameters=[AT])
    def get(self, request: Request, uuid: str) -> Response:
        """As JSON."""
        check_known(request, ("format", "at"))
        gpu, found = _map_of(uuid, request, self.visibility)
        body = {
            "uuid": uuid,
            "node": gpu.node.name,
            "memory_slices": gpu.memory_slices,
            "intervals": [structs.asdict(item) for item in found],
        }
        return Response(body)


class ClusterMap(Governed, APIView):
    """All memory slices of every GPU of the cluster, by node."""

    @extend_schema(responses=shapes.ClusterMapSerializer)
    def get(self, request: Request) -> Response:
        """As JSON."""
        check_known(request, ("format",))
        return Response({"nodes": cluster_map(self.visibility)})


class GpuDrawing(Governed, APIView):
    """The same as a drawing."""

    @extend_schema(
        operation_id="v1_gpus_drawing",
        responses={(200, "image/svg+xml"): OpenApiTypes.STR},
        parameters=[AT, OpenApiParameter("format", exclude=True)],
    )
    def get(self, request: Request, uuid: str) -> HttpResponse:
        """As SVG."""
        check_known(request, ("at",))
        gpu, found = _map_of(uuid, request, self.visibility)
        model = gpu.gpu.model if isinstance(gpu, GpuState) else gpu.model
        return HttpResponse(draw(gpu, model, found), content_type="image/svg+xml")


def _map_of(uuid: str, request: Request, seen: Visibility) -> tuple[Gpu | GpuState, list[Interval]]:
    """The GPU now, or as of ``at``."""
    rows = MigReservation.objects.filter(gpu_uuid=uuid).order_by("start", "id")
    text = request.query_params.get("at")
    gpu: Gpu | GpuState
    if text is None:
        moment = None
        gpu = get_object_or_404(live_gpus(), uuid=uuid)
        rows = rows.filter(released_at=None)
    else:
        moment = parse_moment("at", text)
        gpu = get_object_or_404(gpus_at(moment), uuid=uuid)
        rows = as_of(rows, moment)
    return gpu, [masked(item, seen) for item in intervals(gpu, list(rows), moment)]
