"""Whether the worker works."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from hami_web.api.governed import Governed
from hami_web.api.pages import Rows
from hami_web.api.parameters import check_known
from hami_web.api.serializers import history as shapes
from hami_web.history.vitals import vitals


class Worker(Governed, GenericAPIView[Any]):
    """Each part of the worker, with its last sign of life."""

    serializer_class = shapes.VitalSerializer
    pagination_class = Rows

    def get(self, request: Request) -> Response:
        """One row for each part."""
        check_known(request, ("format",))
        found = vitals(datetime.now(UTC), compare_every_s=settings.RECONCILE_SECONDS)
        return Response({"results": self.get_serializer(found, many=True).data})
