"""Parameters of addresses that several pages have."""

from __future__ import annotations

from hami_web.core.errors import InvalidField


def parse_text(name: str, text: str, most: int) -> str:
    """A text that some row may have. Raises InvalidField."""
    if len(text) > most or "\0" in text:
        raise InvalidField(name, text[:40], f"at most {most} characters, none of them NUL")
    return text.strip()
