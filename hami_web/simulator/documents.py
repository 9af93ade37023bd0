"""JSON documents as the API server keeps them, and the few ways everything here reads them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

JsonObject = dict[str, Any]

_DECODER = msgspec.json.Decoder()


def encode(document: JsonObject) -> bytes:
    """Compact JSON without a line end; key order is kept."""
    return msgspec.json.encode(document)


def decode(data: bytes) -> Any:
    """Parse JSON of any shape; raises ``msgspec.DecodeError`` for what is none."""
    return _DECODER.decode(data)


def decode_object(data: bytes) -> JsonObject:
    """Parse a JSON object; raises ``msgspec.DecodeError`` for anything else."""
    document = _DECODER.decode(data)
    if not isinstance(document, dict):
        raise msgspec.DecodeError(f"a JSON object is expected, found {type(document).__name__}")
    return document


def timestamp(at: datetime | None = None) -> str:
    """A moment as ``metav1.Time`` writes it: RFC 3339 in UTC, whole seconds."""
    return (at or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_timestamp(text: str) -> datetime:
    """The aware moment of a ``metav1.Time`` or ``metav1.MicroTime``."""
    return datetime.fromisoformat(text)


def lookup(document: JsonObject, path: str) -> Any:
    """The value at a dotted path such as ``spec.nodeName``; None where a step is missing."""
    value: Any = document
    for step in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def metadata(document: JsonObject) -> JsonObject:
    """The document's metadata, made when absent so that it can be written to."""
    found = document.get("metadata")
    if not isinstance(found, dict):
        found = {}
        document["metadata"] = found
    return found


def annotations_of(document: JsonObject) -> dict[str, str]:
    """A copy of the annotations; empty when there are none."""
    return dict(metadata(document).get("annotations") or {})


def key_of(document: JsonObject) -> tuple[str, str]:
    """(namespace, name); the namespace of a cluster-scoped object is empty."""
    meta = document.get("metadata") or {}
    return meta.get("namespace") or "", meta.get("name") or ""


def uid_of(document: JsonObject) -> str:
    """The object's UID; empty before the server gave it one."""
    return str((document.get("metadata") or {}).get("uid") or "")
