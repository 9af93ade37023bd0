"""Lists as CSV: a line for each row, nested values as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework.renderers import BaseRenderer

from hami_web.tabular import csv_text


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
        if not rows:
            return ""
        columns = list(rows[0])
        return csv_text(columns, ([row[name] for name in columns] for row in rows))
