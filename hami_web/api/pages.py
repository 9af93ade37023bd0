"""How lists are wrapped, for the schema; the views make the pages themselves."""

from __future__ import annotations

from typing import Any

from rest_framework.pagination import BasePagination

Schema = dict[str, Any]


class Rows(BasePagination):
    """``results``, all of them."""

    def get_paginated_response_schema(self, schema: Schema) -> Schema:
        """An object around the rows."""
        return {"type": "object", "required": ["results"], "properties": {"results": schema}}


class Pages(Rows):
    """``results``, and where the next page is."""

    def get_paginated_response_schema(self, schema: Schema) -> Schema:
        """The same with ``next``, null on the last page."""
        rows = super().get_paginated_response_schema(schema)
        following = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["next", "results"],
            "properties": {"next": following, **rows["properties"]},
        }
