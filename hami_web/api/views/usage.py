"""GPU-hours over a range of time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from hami_web.api.governed import Governed
from hami_web.api.parameters import MOMENT, check_known, parse_moment
from hami_web.api.problems import InvalidParameter
from hami_web.api.serializers import reservations as shapes
from hami_web.reservations.usage import usage_between

USAGE_DAYS_MAX = 366


class UsageHours(Governed, GenericAPIView[Any]):
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
        seen = self.visibility.among(row.namespace for row in found)
        found = [row for row in found if row.namespace in seen]
        return Response({"results": self.get_serializer(found, many=True).data})
