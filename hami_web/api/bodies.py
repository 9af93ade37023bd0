"""Bodies of requests: JSON read strictly, wrong fields told with value and what is allowed.

The ``help_text`` of a field says what is allowed; the schema shows the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any, TypeVar

from rest_framework import serializers
from rest_framework.exceptions import ParseError
from rest_framework.fields import empty
from rest_framework.parsers import JSONParser
from rest_framework.request import Request

from hami_web.api.problems import InvalidBody, error_of

Values = TypeVar("Values", bound=Mapping[str, Any])
_ABSENT = "(absent)"


class StrictJson(JSONParser):
    """JSON without ``NaN``, and without a depth that ends our stack."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """The value; ParseError for what is no JSON."""
        try:
            return super().parse(stream, media_type, dict(parser_context or {}))
        except RecursionError as error:
            raise ParseError("JSON parse error - nested too deeply") from error


class WholeNumber(serializers.IntegerField):
    """A JSON number without a fraction; no text that looks like one."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return super().to_internal_value(data)


class Text(serializers.CharField):
    """A JSON string that can be stored and answered."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or "\0" in data or not data.isprintable():
            self.fail("invalid")
        return super().to_internal_value(data)


class Flag(serializers.BooleanField):
    """``true`` or ``false`` and nothing like them."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class BodySerializer(serializers.Serializer[Any]):
    """A JSON object in which unknown fields are refused."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            unknown = {str(name) for name in data} - set(self.fields)
            if unknown:
                raise serializers.ValidationError(
                    dict.fromkeys(sorted(unknown), f"only {', '.join(self.fields)}")
                )
        return super().to_internal_value(data)


def read_body(serializer: type[BodySerializer], request: Request) -> dict[str, Any]:
    """The checked values of a body. Raises InvalidBody; an empty body is an empty object."""
    reader = serializer(data=request.data)
    if not reader.is_valid():
        raise InvalidBody(_errors(reader, reader.errors, request.data, ""))
    return dict(reader.validated_data)


def _errors(reader: Any, found: Any, data: Any, path: str) -> list[dict[str, str]]:
    """Walk DRF's tree of messages beside the serializer and what was sent."""
    if isinstance(found, Mapping):
        entries = []
        for name, below in found.items():
            field, value = _below(reader, name), _value(data, name)
            entries += _errors(field, below, value, _join(path, name))
        return entries
    if isinstance(found, list) and any(isinstance(item, Mapping) for item in found):
        child = getattr(reader, "child", None)
        entries = []
        for number, below in enumerate(found):
            if below:
                entries += _errors(child, below, _value(data, number), f"{path}[{number}]")
        return entries
    shown = _ABSENT if data is empty else data
    return [error_of(path or "body", shown, _allowed(reader, found))]


def _below(reader: Any, name: object) -> Any:
    if name == "non_field_errors":
        return reader
    fields = getattr(reader, "fields", None)
    if fields is not None:
        return fields.get(name)
    return getattr(reader, "child", None)


def _value(data: Any, name: Any) -> Any:
    if name == "non_field_errors":
        return data
    if isinstance(data, Mapping):
        return data.get(name, empty)
    if isinstance(data, list) and isinstance(name, int) and name < len(data):
        return data[name]
    return empty


def _join(path: str, name: object) -> str:
    if name == "non_field_errors":
        return path
    if isinstance(name, int):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else str(name)


def _allowed(reader: Any, found: Any) -> str:
    """What the field's help text says; the message itself where there is no such field."""
    text = str(getattr(reader, "help_text", None) or "")
    if text:
        return text
    if isinstance(reader, serializers.Serializer):
        return f"an object with {', '.join(reader.fields)}"
    return str(found[0] if isinstance(found, list) and found else found)
