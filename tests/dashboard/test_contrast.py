"""Contrast of the style sheet's colours, in both themes (WCAG 1.4.3 and 1.4.11)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

STATIC = Path(__file__).parents[2] / "static/dashboard"
SHEETS = [(STATIC / name).read_text(encoding="utf-8") for name in ("dashboard.css", "dark.css")]
TEXT, GRAPHIC = 4.5, 3.0
PAIRS = [
    *((name, ground, TEXT) for name in ("ink", "muted") for ground in ("page", "card", "slot")),
    *((name, "card", TEXT) for name in ("accent", "good", "warn", "bad")),
    ("card", "accent", TEXT),
    ("ink", "bad-ground", TEXT),
    ("on-realized", "realized", TEXT),
    *(("on-taken", f"{state}", TEXT) for state in ("held", "bound", "terminating", "blocked")),
    ("on-taken", "conflicted", TEXT),
    ("on-taken", "unavailable", TEXT),
    ("unavailable-ink", "card", GRAPHIC),
    ("realized", "card", GRAPHIC),
    *((f"{state}-ink", "card", GRAPHIC) for state in ("held", "bound", "terminating", "blocked")),
    ("conflicted-ink", "card", GRAPHIC),
]


def colours(dark: bool) -> dict[str, str]:
    light_block, dark_block = (re.search(r":root \{(.*?)\n\}", s, re.DOTALL)[1] for s in SHEETS)
    light = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light_block))
    return light | dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", dark_block)) if dark else light


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("front", "ground", "least"), PAIRS)
def test_colours_can_be_told_apart(front: str, ground: str, least: float, dark: bool) -> None:
    known = colours(dark)
    high, low = sorted((luminance(known[front]), luminance(known[ground])), reverse=True)
    assert (high + 0.05) / (low + 0.05) >= least
