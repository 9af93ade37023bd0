"""Moments of the past in addresses: ``at=2026-01-31T12:00:00Z``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest

from hami_web.core.errors import InvalidField

BACK_MAX: Final = timedelta(days=366)
MOMENT: Final = "a time as 2026-01-31T12:00:00Z, at most 366 days back"

AGO: Final = timedelta(hours=1)
"""How far back the link of a page leads that shows now."""


def parse_moment(text: str, now: datetime) -> datetime:
    """A time with its zone, not in the future. Raises InvalidField."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidField("at", text, MOMENT) from None
    if moment.tzinfo is None or "T" not in text:
        raise InvalidField("at", text, MOMENT)
    if moment > now or moment < now - BACK_MAX:
        raise InvalidField("at", text, MOMENT)
    return moment.astimezone(UTC)


def asked_moment(request: HttpRequest, now: datetime) -> datetime | None:
    """The moment of an address, None for now. Raises InvalidField."""
    text = request.GET.get("at", "")
    return parse_moment(text, now) if text else None


def written(moment: datetime) -> str:
    """As it stands in addresses, to the second."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def query(moment: datetime | None) -> str:
    """The query string that keeps a moment, empty for now."""
    return f"?{urlencode({'at': written(moment)})}" if moment else ""
