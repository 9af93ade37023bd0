"""A share over time as a picture: one line, thinned to what a screen can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.utils.safestring import SafeString, mark_safe

WIDTH: Final = 1000
HEIGHT: Final = 160
POINTS_MAX: Final = 400
"""Points of the line; of the samples that fall on one point the highest is shown."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A picture, and in numbers what it says: shares 0 … 1. ``count`` is how many samples."""

    picture: SafeString
    since: datetime
    until: datetime
    count: int
    least: float
    most: float
    newest: float

    @property
    def words(self) -> tuple[str, str, str]:
        """Least, most and newest in percent."""
        return (_percent(self.least), _percent(self.most), _percent(self.newest))


def draw_curve(
    points: Sequence[tuple[datetime, float]], since: datetime, until: datetime
) -> Curve | None:
    """Draw shares in ``[since, until]``, oldest first; None without any."""
    if not points:
        return None
    columns: dict[int, float] = {}
    for at, value in points:
        column = int((at - since) / (until - since) * POINTS_MAX)
        columns[column] = max(value, columns.get(column, 0.0))
    line = " ".join(
        f"{column * WIDTH / POINTS_MAX:.5g},{(1 - value) * HEIGHT:.5g}"
        for column, value in sorted(columns.items())
    )
    rules = "".join(
        f'<line x2="{WIDTH}" y1="{HEIGHT * part:.4g}" y2="{HEIGHT * part:.4g}"/>'
        for part in (0, 0.25, 0.5, 0.75, 1)
    )
    first = min(columns) * WIDTH / POINTS_MAX
    last = max(columns) * WIDTH / POINTS_MAX
    picture = mark_safe(  # noqa: S308 - numbers only
        f'<svg class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" '
        f'width="100%" height="{HEIGHT}" aria-hidden="true"><g class="rules">{rules}</g>'
        f'<polygon points="{first:.5g},{HEIGHT} {line} {last:.5g},{HEIGHT}"/>'
        f'<polyline points="{line}"/></svg>'
    )
    values = [value for _, value in points]
    return Curve(picture, since, until, len(points), min(values), max(values), values[-1])


def _percent(value: float) -> str:
    return f"{value * 100:.0f} %"
