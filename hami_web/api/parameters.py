"""Parameters of a list: filters, time, order, page; each checked, unknown ones refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet
from drf_spectacular.utils import OpenApiExample, OpenApiParameter
from rest_framework.request import Request

from hami_web.api.problems import InvalidParameter

M = TypeVar("M", bound=Model)
Schema = Mapping[str, object]
LIMIT_DEFAULT = 50
LIMIT_MAX = 500
OFFSET_MAX = 1_000_000
TEXT_MAX = 300
IN_MAX = 100
NUMBER_MAX = 2**31 - 1
MOMENT = "an ISO 8601 time with zone, as 2026-01-31T12:00:00Z"
MOMENT_EXAMPLE = "2026-01-31T12:00:00Z"
A_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": TEXT_MAX}
TEXTS: Schema = {"type": "string", "minLength": 1}
A_FLAG: Schema = {"type": "string", "enum": ["true", "false"]}
A_MOMENT: Schema = {"type": "string", "format": "date-time"}
A_NUMBER: Schema = {"type": "integer", "minimum": 0, "maximum": NUMBER_MAX}
TEXT = f"1…{TEXT_MAX} characters, none of them NUL"
RANGE_DAYS_MAX = 366
_EXAMPLE = OpenApiExample("a moment", MOMENT_EXAMPLE)
RANGE = (
    OpenApiParameter(
        "from", dict(A_MOMENT), required=True, description=MOMENT, examples=[_EXAMPLE]
    ),
    OpenApiParameter(
        "to", dict(A_MOMENT), description=f"{MOMENT}; default now", examples=[_EXAMPLE]
    ),
)
COMMON = ("limit", "offset", "ordering", "fields", "format")


@dataclass(frozen=True, slots=True)
class Filter:
    """One parameter of the query. ``apply`` takes rows and the parsed value.

    ``schema`` is what OpenAPI says of its values, ``example`` one of them.
    """

    name: str
    parse: Callable[[str, str], object]
    apply: Callable[[QuerySet[Any], Any], QuerySet[Any]]
    allowed: str
    schema: Mapping[str, object]
    example: object


def by_text(name: str, column: str | None = None) -> tuple[Filter, Filter]:
    """``name=`` and ``name__in=`` with commas."""
    lookup = column or name
    return (
        Filter(
            name,
            parse_text,
            lambda rows, value: rows.filter(**{lookup: value}),
            TEXT,
            A_TEXT,
            "a",
        ),
        Filter(
            f"{name}__in",
            _parse_texts,
            lambda rows, value: rows.filter(**{f"{lookup}__in": value}),
            f"at most {IN_MAX} values separated by commas",
            TEXTS,
            "a,b",
        ),
    )


def by_choice(name: str, words: Sequence[str]) -> tuple[Filter, Filter]:
    """Like :func:`by_text`, of a few words."""
    allowed = ", ".join(words)

    def parse(field: str, text: str) -> str:
        if text not in words:
            raise InvalidParameter(field, text, allowed)
        return text

    def parse_all(field: str, text: str) -> list[str]:
        return [parse(field, part) for part in text.split(",")]

    return (
        Filter(
            name,
            parse,
            lambda rows, value: rows.filter(**{name: value}),
            allowed,
            {"type": "string", "enum": list(words)},
            words[0],
        ),
        Filter(
            f"{name}__in",
            parse_all,
            lambda rows, value: rows.filter(**{f"{name}__in": value}),
            f"of {allowed}, separated by commas",
            TEXTS,
            ",".join(words[:2]),
        ),
    )


def by_flag(name: str, condition: Callable[[QuerySet[Any], bool], QuerySet[Any]]) -> Filter:
    """``true`` or ``false``."""

    def parse(field: str, text: str) -> bool:
        if text not in ("true", "false"):
            raise InvalidParameter(field, text, "true, false")
        return text == "true"

    return Filter(name, parse, condition, "true, false", A_FLAG, "true")


def by_number(name: str, lookup: str | None = None) -> Filter:
    """A whole number; ``lookup`` is the condition where it is not equality."""
    allowed = f"a whole number in 0…{NUMBER_MAX}"

    def parse(field: str, text: str) -> int:
        plain = text.isascii() and text.isdigit() and len(text) <= len(str(NUMBER_MAX))
        if not plain or int(text) > NUMBER_MAX:
            raise InvalidParameter(field, text, allowed)
        return int(text)

    condition = lookup or name
    return Filter(
        name, parse, lambda rows, value: rows.filter(**{condition: value}), allowed, A_NUMBER, 1
    )


def by_size(name: str) -> tuple[Filter, Filter]:
    """``name__gte=`` and ``name__lte=``."""
    return (
        by_number(f"{name}__gte", f"{name}__gte"),
        by_number(f"{name}__lte", f"{name}__lte"),
    )


def by_search(*columns: str) -> Filter:
    """``q=``: a part of any of some columns, in any case."""

    def search(rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        found = Q()
        for column in columns:
            found |= Q(**{f"{column}__icontains": value})
        return rows.filter(found)

    allowed = f"a part of {', '.join(columns)}; {TEXT}"
    return Filter("q", parse_text, search, allowed, A_TEXT, "a")


def by_time(name: str) -> tuple[Filter, Filter]:
    """``name__gte=`` and ``name__lt=``."""
    return (
        Filter(
            f"{name}__gte",
            parse_moment,
            lambda rows, value: rows.filter(**{f"{name}__gte": value}),
            MOMENT,
            A_MOMENT,
            MOMENT_EXAMPLE,
        ),
        Filter(
            f"{name}__lt",
            parse_moment,
            lambda rows, value: rows.filter(**{f"{name}__lt": value}),
            MOMENT,
            A_MOMENT,
            MOMENT_EXAMPLE,
        ),
    )


def parse_text(field: str, text: str) -> str:
    """A text that a column may hold."""
    if not 1 <= len(text) <= TEXT_MAX or "\0" in text:
        raise InvalidParameter(field, text, TEXT)
    return text


def _parse_texts(field: str, text: str) -> list[str]:
    parts = text.split(",")
    if len(parts) > IN_MAX:
        raise InvalidParameter(field, text, f"at most {IN_MAX} values")
    return [parse_text(field, part) for part in parts]


def parse_moment(field: str, text: str) -> datetime:
    """A time with its zone."""
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC) if "T" in text else None
        has_zone = moment is not None and datetime.fromisoformat(text).tzinfo is not None
    except (ValueError, OverflowError):
        moment, has_zone = None, False
    if moment is None or not has_zone:
        raise InvalidParameter(field, text, MOMENT)
    return moment


def parse_range(request: Request) -> tuple[datetime, datetime]:
    """``from`` and ``to``, by default now; at most 366 days."""
    start = parse_moment("from", request.query_params.get("from", ""))
    text = request.query_params.get("to")
    end = datetime.now(UTC) if text is None else parse_moment("to", text)
    if not timedelta(0) < end - start <= timedelta(days=RANGE_DAYS_MAX):
        shown = text or end.isoformat()
        raise InvalidParameter("to", shown, f"after from, at most {RANGE_DAYS_MAX} days")
    return start, end


def parse_whole(request: Request, field: str, default: int, *, least: int, most: int) -> int:
    """A whole number in ``least … most``."""
    text = request.query_params.get(field, str(default))
    plain = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    if not (plain and least <= int(text) <= most):
        raise InvalidParameter(field, text, f"a whole number in {least}…{most}")
    return int(text)


def whole_schema(least: int, most: int, default: int) -> Schema:
    """What OpenAPI says of a whole number with bounds."""
    return {"type": "integer", "minimum": least, "maximum": most, "default": default}


def check_known(request: Request, known: Sequence[str]) -> None:
    """Refuse parameters that nobody reads, and those given twice."""
    for field, values in request.query_params.lists():
        if field not in known:
            raise InvalidParameter(field, str(values[-1]), f"parameters {', '.join(known)}")
        if len(values) > 1:
            raise InvalidParameter(field, ", ".join(map(str, values)), "each parameter once")


def apply_filters(rows: QuerySet[M], request: Request, filters: Sequence[Filter]) -> QuerySet[M]:
    """The rows that all given filters leave."""
    for item in filters:
        text = request.query_params.get(item.name)
        if text is not None:
            rows = item.apply(rows, item.parse(item.name, text))
    return rows


def apply_ordering(rows: QuerySet[M], request: Request, allowed: Sequence[str]) -> QuerySet[M]:
    """Rows in the order asked for; the key makes every order total."""
    text = request.query_params.get("ordering")
    if text is None:
        return rows
    fields = text.split(",")
    for field in fields:
        if field.removeprefix("-") not in allowed:
            raise InvalidParameter("ordering", text, f"{', '.join(allowed)}, with - for descending")
    return rows.order_by(*fields, "pk")


AT = Filter("at", parse_moment, lambda rows, _moment: rows, MOMENT, A_MOMENT, MOMENT_EXAMPLE)
"""An instant of the past; the view's ``rows`` are of then already."""
