"""JSON as Go's encoding/json writes it, and strict access to decoded JSON.

The annotations are read by Go programs and compared as text, so what we write equals theirs byte
for byte: no blanks, keys in declaration order, ``<``, ``>`` and ``&`` escaped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

from hami_web.core.errors import MalformedContract

UINT32_MAX: Final = 2**32 - 1
INT32_MAX: Final = 2**31 - 1

_GO_ESCAPES: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def encode(value: object) -> str:
    """Serialize as Go does, with its HTML-safe escapes."""
    text = _ENCODER.encode(value)
    if text.isascii() and not ("<" in text or ">" in text or "&" in text):
        return text
    return text.translate(_GO_ESCAPES)


def decode_array(text: str, field: str) -> list[object]:
    """Parse a JSON array; raise :class:`MalformedContract` for anything else."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise MalformedContract(field, text, f"a JSON array ({error})") from error
    if not isinstance(value, list):
        raise MalformedContract(field, value, "a JSON array")
    return cast(list[object], value)


def as_object(value: object, field: str) -> Mapping[str, object]:
    """Return a JSON object, or raise."""
    if not isinstance(value, dict):
        raise MalformedContract(field, value, "a JSON object")
    return cast(Mapping[str, object], value)


def as_array(value: object, field: str) -> list[object]:
    """Return a JSON array, or raise."""
    if not isinstance(value, list):
        raise MalformedContract(field, value, "a JSON array")
    return cast(list[object], value)


def as_text(value: object, field: str) -> str:
    """Return a non-empty JSON string, or raise."""
    if not isinstance(value, str) or not value:
        raise MalformedContract(field, value, "a non-empty string")
    return value


def as_bool(value: object, field: str) -> bool:
    """Return a JSON boolean, or raise."""
    if not isinstance(value, bool):
        raise MalformedContract(field, value, "true or false")
    return value


def as_integer(value: object, field: str, *, least: int = 0, most: int = UINT32_MAX) -> int:
    """Return a JSON integer in ``least … most``, or raise.

    ``1.0`` is no integer here: Go refuses a decimal point in an integer field, and so must we, or
    two readers of one annotation would disagree.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise MalformedContract(field, value, f"an integer in {least}…{most}")
    return value


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
