"""Answers as JSON, written by msgspec: a list of many rows takes a tenth of the time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from rest_framework.renderers import JSONRenderer
from rest_framework.utils.encoders import JSONEncoder

_other = JSONEncoder()


class FastJsonRenderer(JSONRenderer):
    """``format=json``. Times are ISO 8601 with ``Z``, as DRF writes them."""

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,  # noqa: ARG002
        renderer_context: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> bytes:
        """The whole answer."""
        return b"" if data is None else _encoder.encode(data)


def _plain(value: object) -> object:
    """What msgspec does not know: texts that are subclasses, lazy translations, DRF's types."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Mapping):
        return dict(value)
    return _other.default(value)


_encoder = msgspec.json.Encoder(enc_hook=_plain)
