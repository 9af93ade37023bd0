"""How one browser shows the pages: theme, density, times, motion; kept in a cookie there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Final
from urllib.parse import parse_qsl, urlencode

from django.http import HttpRequest

from hami_web.core.errors import InvalidField

COOKIE: Final = "hami_display"
COOKIE_S: Final = 365 * 24 * 3600
CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "theme": ("auto", "light", "dark"),
    "density": ("auto", "comfortable", "compact", "dense"),
    "times": ("utc", "local"),
    "motion": ("auto", "reduced"),
}
"""Values by field; the first is the one without a cookie."""


@dataclass(frozen=True, slots=True)
class Display:
    """``auto`` follows the browser's own setting, for density the number of GPUs; ``local`` is the
    browser's time zone."""

    theme: str = "auto"
    density: str = "auto"
    times: str = "utc"
    motion: str = "auto"

    @property
    def written(self) -> str:
        """As the cookie has it."""
        return urlencode(asdict(self))

    @property
    def dark_media(self) -> str:
        """For which media the dark colours are; empty for none."""
        return {"light": "", "dark": "all"}.get(self.theme, "(prefers-color-scheme: dark)")

    @property
    def schemes(self) -> str:
        """The colour schemes of the page, for the browser's own controls."""
        return "light dark" if self.theme == "auto" else self.theme


def parse_display(given: Mapping[str, str]) -> Display:
    """What a form sent. Raises InvalidField."""
    chosen = {}
    for field in fields(Display):
        value = given.get(field.name, CHOICES[field.name][0])
        if value not in CHOICES[field.name]:
            raise InvalidField(field.name, value[:40], ", ".join(CHOICES[field.name]))
        chosen[field.name] = value
    return Display(**chosen)


def display_of(request: HttpRequest) -> Display:
    """That of a request's cookie; one that means nothing counts as none."""
    try:
        return parse_display(dict(parse_qsl(request.COOKIES.get(COOKIE, ""))))
    except (InvalidField, ValueError):
        return Display()


def shown(request: HttpRequest) -> dict[str, object]:
    """Context processor: ``display`` for every template."""
    return {"display": display_of(request)}
