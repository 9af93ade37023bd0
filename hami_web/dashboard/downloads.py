"""What a page shows as a file: the same rows and the same visibility, by ``format=``.

Names of columns and codes are the same in every language.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from hami_web.core.errors import InvalidField
from hami_web.dashboard import columns
from hami_web.dashboard.cluster_map import NodeBlock
from hami_web.dashboard.pages import marked
from hami_web.dashboard.picture_file import THEMES, draw_picture
from hami_web.tabular import csv_text

ROWS: Final = ("csv", "json")
DRAWN: Final = (*ROWS, "svg")
"""Formats of pages that draw GPUs."""
THEME_WORDS: Final = {"light": _("light"), "dark": _("dark")}
TYPES: Final = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Sheet:
    """Rows of a page. ``name`` is that of the file."""

    name: str
    columns: Sequence[str]
    rows: Iterable[Sequence[object]]


@dataclass(frozen=True, slots=True)
class Download:
    """One link of a page."""

    word: str
    address: str


def asked_format(request: HttpRequest, formats: Sequence[str] = ROWS) -> str:
    """The format of an address, empty for the page itself. Raises InvalidField."""
    wanted = request.GET.get("format", "")
    if wanted and wanted not in formats:
        raise InvalidField("format", wanted[:40], ", ".join(formats))
    return wanted


def asked_theme(request: HttpRequest) -> str:
    """The theme of a picture. Raises InvalidField."""
    theme = request.GET.get("theme", THEMES[0])
    if theme not in THEMES:
        raise InvalidField("theme", theme[:40], ", ".join(THEMES))
    return theme


def links(request: HttpRequest, *, picture: bool = False, **more: str) -> list[Download]:
    """Links to the files of the very address that is shown, with what it left out."""
    found = [Download(name.upper(), _address(request, format=name, **more)) for name in ROWS]
    if picture:
        found += [
            Download(
                f"SVG ({THEME_WORDS[theme]})",
                _address(request, format="svg", theme=theme, **more),
            )
            for theme in THEMES
        ]
    return found


def answer(sheet: Sheet, wanted: str, version: int) -> HttpResponse:
    """The rows as a file."""
    if wanted == "csv":
        body = csv_text(sheet.columns, sheet.rows)
    else:
        rows = [dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows]
        told = {"at": timezone.now(), "rows": rows}
        body = json.dumps(told, ensure_ascii=False, default=_plain)
    return _file(body, sheet.name, wanted, version)


def picture(blocks: Iterable[NodeBlock], name: str, theme: str, version: int) -> HttpResponse:
    """The rows of GPUs as one picture that needs nothing else."""
    return _file(draw_picture(blocks, theme), name, "svg", version)


def _file(body: str, name: str, kind: str, version: int) -> HttpResponse:
    response = HttpResponse(body, content_type=TYPES[kind])
    response["Content-Disposition"] = f'attachment; filename="{name}.{kind}"'
    return marked(response, version)


def _address(request: HttpRequest, **changes: str) -> str:
    asked = request.GET.copy()
    # Files have columns of their own, and all of them.
    asked.pop(columns.NAME, None)
    for name, value in changes.items():
        asked[name] = value
    return f"?{asked.urlencode()}"


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value)
