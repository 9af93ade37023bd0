"""Lists as CSV: a line for each row, nested values as JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from rest_framework.renderers import BaseRenderer

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters by which spreadsheets take a text for a formula."""


class CsvRenderer(BaseRenderer):
    """``format=csv``."""

    media_type = "text/csv"
    format = "csv"
    charset = "utf-8"

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,  # noqa: ARG002
        renderer_context: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> str:
        """Header and rows of a page; a single object is one row."""
        rows = data.get("results", [data]) if isinstance(data, dict) else data
        output = io.StringIO()
        if rows:
            writer = csv.DictWriter(output, fieldnames=list(rows[0]), lineterminator="\r\n")
            writer.writeheader()
            writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
        return output.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, (list, dict)):
        return msgspec.json.encode(value).decode()
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return value
