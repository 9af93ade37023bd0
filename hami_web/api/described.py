"""Parameters as the schema describes them."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, OpenApiParameter

from hami_web.api.parameters import A_MOMENT, MOMENT, MOMENT_EXAMPLE, Schema

A_NAME: Schema = {"type": "string", "minLength": 1}


def parameter(
    name: str,
    schema: Schema,
    description: str,
    example: object,
    *,
    required: bool = False,
    header: bool = False,
) -> OpenApiParameter:
    """A parameter of the query, or a header, with an example."""
    return OpenApiParameter(
        name,
        dict(schema),
        OpenApiParameter.HEADER if header else OpenApiParameter.QUERY,
        required=required,
        description=description,
        examples=[OpenApiExample("for example", example)],
    )


def moment(name: str, more: str = "", *, required: bool = False) -> OpenApiParameter:
    """A time."""
    return parameter(name, A_MOMENT, f"{MOMENT}{more}", MOMENT_EXAMPLE, required=required)
