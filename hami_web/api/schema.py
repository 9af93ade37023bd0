"""What the OpenAPI schema says of a list's parameters and of errors."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter

from hami_web.access.permissions import CallerAuthentication
from hami_web.api.listing import ListView
from hami_web.api.parameters import LIMIT_MAX, OFFSET_MAX


class ApiSchema(AutoSchema):
    """Reads the parameters from the view that checks them."""

    def get_override_parameters(self) -> list[Any]:
        """Every parameter that the view reads."""
        if not isinstance(self.view, ListView):
            return []
        names = [(item.name, item.allowed) for item in self.view.filters]
        ordering = ", ".join(self.view.ordering)
        return [
            OpenApiParameter("limit", int, description=f"1…{LIMIT_MAX}"),
            OpenApiParameter("offset", int, description=f"0…{OFFSET_MAX}"),
            OpenApiParameter("ordering", str, description=f"{ordering}; - for descending"),
            OpenApiParameter("fields", str, description="names separated by commas"),
            *(OpenApiParameter(name, str, description=f"allowed: {text}") for name, text in names),
        ]


class CallerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers by subclassing
    """How the schema tells of tokens; browsers are known by their session."""

    target_class = CallerAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:  # noqa: ARG002
        """HTTP bearer."""
        return {"type": "http", "scheme": "bearer"}
