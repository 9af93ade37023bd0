"""What changed between two instants."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from hami_web.api.described import parameter
from hami_web.api.governed import Governed
from hami_web.api.listing import next_url
from hami_web.api.pages import Pages
from hami_web.api.parameters import (
    A_TEXT,
    LIMIT_DEFAULT,
    LIMIT_MAX,
    OFFSET_MAX,
    RANGE,
    TEXT,
    check_known,
    parse_range,
    parse_text,
    parse_whole,
    whole_schema,
)
from hami_web.api.problems import InvalidParameter
from hami_web.api.serializers import history as shapes
from hami_web.history.changes import ENTITIES, Wanted, changes
from hami_web.reservations.models import MigReservation

_TEXTS: Final = ("namespace", "node", "gpu_uuid")


class Changes(Governed, GenericAPIView[Any]):
    """Steps of reservations, and what nodes, GPUs and blocked memory slices became; oldest first.

    ``to`` itself is not within the range, which is at most 366 days.
    """

    serializer_class = shapes.ChangeSerializer
    pagination_class = Pages

    @extend_schema(
        parameters=[
            *RANGE,
            parameter(
                "entity",
                {"type": "string", "enum": list(ENTITIES)},
                f"allowed: {', '.join(ENTITIES)}",
                ENTITIES[0],
            ),
            *(parameter(name, A_TEXT, f"allowed: {TEXT}", "a") for name in _TEXTS),
            parameter("limit", whole_schema(1, LIMIT_MAX, LIMIT_DEFAULT), f"1…{LIMIT_MAX}", 100),
            parameter("offset", whole_schema(0, OFFSET_MAX, 0), f"0…{OFFSET_MAX}", 100),
        ]
    )
    def get(self, request: Request) -> Response:
        """One page."""
        known = ("from", "to", "entity", *_TEXTS, "limit", "offset", "format")
        check_known(request, known)
        limit = parse_whole(request, "limit", LIMIT_DEFAULT, least=1, most=LIMIT_MAX)
        offset = parse_whole(request, "offset", 0, least=0, most=OFFSET_MAX)
        found = changes(self._wanted(request), offset=offset, limit=limit + 1)
        more = next_url(request, offset + limit) if len(found) > limit else None
        rows = self.get_serializer(found[:limit], many=True).data
        return Response({"next": more, "results": rows})

    def _wanted(self, request: Request) -> Wanted:
        start, end = parse_range(request)
        query = request.query_params
        entity = query.get("entity", "")
        if "entity" in query and entity not in ENTITIES:
            raise InvalidParameter("entity", entity, ", ".join(ENTITIES))
        texts = {name: parse_text(name, query[name]) for name in _TEXTS if name in query}
        seen = self.visibility.restrict(MigReservation.objects.all(), "namespace")
        return Wanted(start, end, seen, entity=entity, **texts)
