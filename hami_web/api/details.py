"""One object by what the address names."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from django.db.models import QuerySet
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from hami_web.api.codes import NOT_FOUND
from hami_web.api.etags import etag_of
from hami_web.api.governed import Governed
from hami_web.api.listing import ListView, wanted_fields
from hami_web.api.parameters import check_known
from hami_web.api.problems import Problem
from hami_web.api.rows import field_names, read_rows


class DetailView(Governed, GenericAPIView[Any]):
    """GET of one row of a list, with ``links`` to what belongs to it, and an ``ETag``.

    ``column`` is what the address names. A row that the caller may not see is not there.
    """

    of: ClassVar[type[ListView]]
    column: ClassVar[str]

    def get(self, request: Request, **address: Any) -> Response:
        """The row as it is now."""
        check_known(request, ("fields", "format"))
        document = self.document(self.row(**address))
        names = wanted_fields(tuple(document), request)
        answer = {name: document[name] for name in names}
        return Response(answer, headers={"ETag": etag_of(document)})

    def document(self, row: Any) -> dict[str, Any]:
        """All of a row that this caller sees."""
        serializer = cast("Serializer[Any]", self.get_serializer())
        (found,) = read_rows([row], serializer, field_names(type(serializer)))
        return found

    def row(self, **address: Any) -> Any:
        """The row. Raises a problem (404) where there is none for this caller."""
        (value,) = address.values()
        row = self.get_queryset().filter(**{self.column: value}).first()
        if row is None:
            raise Problem(NOT_FOUND, f"there is no {self.column} {str(value)[:200]!r}")
        return row

    def get_queryset(self) -> QuerySet[Any]:
        """The rows of the list that this caller sees."""
        rows = self.of().rows()
        column = self.of.namespace_column
        return self.visibility.restrict(rows, column) if column else rows
