"""Rows as their serializers show them, without a serializer's work for each value.

A serializer says which fields there are, what the schema tells of them and what is hidden. Asked
for each value of each row it costs more than the query, so its fields are turned into getters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, Final

from rest_framework import serializers

from hami_web.api.serializers.hiding import Hiding

Serializer = serializers.Serializer[Any]
Getter = Callable[[Any], Any]
_AS_THEY_ARE: Final = (
    serializers.BooleanField,
    serializers.CharField,
    serializers.ChoiceField,
    serializers.DateTimeField,
    serializers.FloatField,
    serializers.IntegerField,
    serializers.JSONField,
)
"""Fields that show what the attribute holds: the renderer knows how each is written."""


def field_names(shape: type[Serializer]) -> Sequence[str]:
    """All fields in their order."""
    return tuple(_plan(shape))


def read_rows(
    rows: Iterable[Any], serializer: Serializer, names: Iterable[str]
) -> list[dict[str, Any]]:
    """These fields of every row; what ``serializer`` hides from its caller is hidden."""
    read = _reader(serializer, names)
    return [read(row) for row in rows]


def _reader(serializer: Serializer, names: Iterable[str]) -> Callable[[Any], dict[str, Any]]:
    plan = _plan(type(serializer))
    getters = [(name, plan[name](serializer)) for name in names]
    if not isinstance(serializer, Hiding):
        return lambda row: {name: get(row) for name, get in getters}
    hide = serializer.hide
    return lambda row: hide({name: get(row) for name, get in getters}, row)


@cache
def _plan(shape: type[Serializer]) -> dict[str, Callable[[Serializer], Getter]]:
    """For each field what makes its getter, given the serializer of a request."""
    own = shape.to_representation
    if own not in (serializers.Serializer.to_representation, Hiding.to_representation):
        raise TypeError(f"{shape.__name__} shows rows in a way that rows.py does not know")
    return {name: _maker(name, field) for name, field in shape().fields.items()}


def _maker(name: str, field: Any) -> Callable[[Serializer], Getter]:
    if isinstance(field, serializers.SerializerMethodField):
        method = field.method_name or f"get_{name}"
        return lambda serializer: getattr(serializer, method)
    read = _path(field.source)
    if not isinstance(field, _AS_THEY_ARE):
        raise TypeError(f"{name}: {field!r}: say in rows.py how such a field is read")
    return lambda _serializer: read


def _path(source: str) -> Getter:
    """Attributes of attributes; keys, where one is a mapping."""
    first, _, rest = source.partition(".")
    if not rest:
        return attrgetter(first)
    get, further = attrgetter(first), _path(rest)

    def follow(row: Any) -> Any:
        found = get(row)
        return found[rest] if isinstance(found, Mapping) else further(found)

    return follow
