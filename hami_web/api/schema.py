"""What the OpenAPI schema says of parameters: the same as the views that check them."""

from __future__ import annotations

from typing import Any, cast

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from rest_framework.generics import GenericAPIView
from rest_framework.serializers import Serializer

from hami_web.access.permissions import CallerAuthentication
from hami_web.api.described import parameter
from hami_web.api.details import DetailView
from hami_web.api.listing import ListView
from hami_web.api.parameters import (
    LIMIT_DEFAULT,
    LIMIT_MAX,
    OFFSET_MAX,
    Filter,
    whole_schema,
)


class ApiSchema(AutoSchema):
    """Reads the parameters from the view that checks them."""

    def get_override_parameters(self) -> list[Any]:
        """Every parameter that the view reads."""
        view = self.view
        if isinstance(view, DetailView) and self.method == "GET":
            return [self._fields()]
        if not isinstance(view, ListView):
            return []
        ordering = ", ".join(view.ordering)
        return [
            parameter("limit", whole_schema(1, LIMIT_MAX, LIMIT_DEFAULT), f"1…{LIMIT_MAX}", 100),
            parameter("offset", whole_schema(0, OFFSET_MAX, 0), f"0…{OFFSET_MAX}", 100),
            parameter(
                "ordering",
                {"type": "string"},
                f"{ordering}, with - for descending, several by comma",
                f"-{view.ordering[0]}",
            ),
            self._fields(),
            *map(_of_filter, view.filters),
        ]

    def _fields(self) -> OpenApiParameter:
        view = cast("GenericAPIView[Any]", self.view)
        serializer = cast("Serializer[Any]", view.get_serializer())
        names = list(serializer.fields)
        text = f"of {', '.join(names)}, separated by commas"
        return parameter("fields", {"type": "string"}, text, ",".join(names[:2]))

    def _is_list_view(self, serializer: Any = None) -> bool:
        """Whatever is wrapped in ``results``."""
        wrapped = getattr(self.view, "pagination_class", None) is not None
        return wrapped or super()._is_list_view(serializer)


def _of_filter(item: Filter) -> OpenApiParameter:
    return parameter(item.name, item.schema, f"allowed: {item.allowed}", item.example)


class CallerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers by subclassing
    """How the schema tells of tokens; browsers are known by their session."""

    target_class = CallerAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:  # noqa: ARG002
        """HTTP bearer."""
        return {"type": "http", "scheme": "bearer"}
