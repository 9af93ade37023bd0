"""Rows as CSV that spreadsheets take for text, not for formulas."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""First characters by which spreadsheets take a text for a formula."""


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Header and rows with CRLF, as RFC 4180 has it."""
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([csv_cell(value) for value in row] for row in rows)
    return output.getvalue()


def csv_cell(value: object) -> object:
    """A value as a cell: nested ones as JSON, times in UTC, formulas with a quote before."""
    if isinstance(value, (list, dict, tuple)):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return value
