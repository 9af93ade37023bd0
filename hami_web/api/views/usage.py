"""GPU-hours over a range of time."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from hami_web.api.governed import Governed
from hami_web.api.pages import Rows
from hami_web.api.parameters import RANGE, check_known, parse_range
from hami_web.api.serializers import reservations as shapes
from hami_web.reservations.usage import usage_between


class UsageHours(Governed, GenericAPIView[Any]):
    """GPU-hours by namespace and profile over a range of time, at most 366 days."""

    serializer_class = shapes.UsageSerializer
    pagination_class = Rows

    @extend_schema(parameters=[*RANGE])
    def get(self, request: Request) -> Response:
        """One row for each namespace and profile."""
        check_known(request, ("from", "to", "format"))
        start, end = parse_range(request)
        found = usage_between(start, end)
        seen = self.visibility.among(row.namespace for row in found)
        found = [row for row in found if row.namespace in seen]
        return Response({"results": self.get_serializer(found, many=True).data})
