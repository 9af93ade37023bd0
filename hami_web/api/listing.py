"""A list of rows by the conventions that all lists share."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar, cast

from django.db.models import QuerySet
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from hami_web.api.governed import Governed
from hami_web.api.pages import Pages
from hami_web.api.parameters import (
    COMMON,
    LIMIT_DEFAULT,
    LIMIT_MAX,
    OFFSET_MAX,
    Filter,
    apply_filters,
    apply_ordering,
    check_known,
    parse_moment,
    parse_whole,
)
from hami_web.api.problems import InvalidParameter
from hami_web.api.rows import field_names, read_rows


class ListView(Governed, GenericAPIView[Any]):
    """GET with filters, ordering, ``limit``/``offset``, ``fields`` and ``format``.

    The answer has ``results`` and ``next``; counting all rows would cost more than a page.
    Where rows belong to namespaces, ``namespace_column`` names the column: those that the caller
    may not see are not there, for filters and order neither.
    """

    pagination_class = Pages
    namespace_column: ClassVar[str] = ""

    filters: ClassVar[tuple[Filter, ...]] = ()
    ordering: ClassVar[tuple[str, ...]] = ()

    def moment(self) -> datetime | None:
        """The instant that the caller asks about by ``at``, None for now."""
        text = self.request.query_params.get("at") if hasattr(self, "request") else None
        return None if text is None else parse_moment("at", text)

    def rows(self) -> QuerySet[Any]:
        """All rows in their usual order, with what the serializer reads already joined.

        Every list has its own; one without is a fault of ours and must not answer.
        """
        raise NotImplementedError

    def get(self, request: Request, **_address: str) -> Response:
        """One page; ``rows`` reads what the address names."""
        check_known(request, (*COMMON, *(item.name for item in self.filters)))
        limit = parse_whole(request, "limit", LIMIT_DEFAULT, least=1, most=LIMIT_MAX)
        offset = parse_whole(request, "offset", 0, least=0, most=OFFSET_MAX)
        rows = apply_filters(self._visible(), request, self.filters)
        rows = apply_ordering(rows, request, self.ordering)
        serializer = cast("Serializer[Any]", self.get_serializer())
        names = wanted_fields(field_names(type(serializer)), request)
        page = list(rows[offset : offset + limit + 1])
        found = read_rows(page[:limit], serializer, names)
        more = next_url(request, offset + limit) if len(page) > limit else None
        return Response({"next": more, "results": found})

    def _visible(self) -> QuerySet[Any]:
        rows = self.rows()
        if not self.namespace_column:
            return rows
        return self.visibility.restrict(rows, self.namespace_column)

    def get_queryset(self) -> QuerySet[Any]:
        """For the schema's generator."""
        return self.rows()


def wanted_fields(known: Sequence[str], request: Request) -> Sequence[str]:
    """The names that ``fields`` keeps, in their order. Raises InvalidParameter for others."""
    text = request.query_params.get("fields")
    if text is None:
        return known
    wanted = text.split(",")
    for name in wanted:
        if name not in known:
            raise InvalidParameter("fields", text, f"of {', '.join(known)}")
    return [name for name in known if name in wanted]


def next_url(request: Request, offset: int) -> str:
    """Where the page that begins at an offset is."""
    query = request.query_params.copy()
    query["offset"] = str(offset)
    return request.build_absolute_uri(f"{request.path}?{query.urlencode()}")
