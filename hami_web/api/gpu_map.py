"""The memory slices of one GPU, as data and as a drawing that stands alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from hami_web.access.visibility import UNAVAILABLE, Visibility
from hami_web.inventory.models import Gpu, GpuState
from hami_web.planning.layout import BLOCKED, FREE, Interval, lay_out
from hami_web.reservations.models import MigReservation, Phase

WIDTH: Final = 80
"""Of one memory slice, in pixels."""
HEIGHT: Final = 48
FILLS: Final = {
    FREE: "#ffffff",
    Phase.HELD.value: "#e9d5ff",
    Phase.RESERVED.value: "#bfdbfe",
    Phase.REALIZED.value: "#86efac",
    Phase.TERMINATING.value: "#fde68a",
    Phase.CONFLICTED.value: "#fca5a5",
    BLOCKED: "#d4d4d4",
    UNAVAILABLE: "#e5e7eb",
}


def intervals(
    gpu: Gpu | GpuState, rows: Sequence[MigReservation], moment: datetime | None = None
) -> list[Interval]:
    """Everything on a GPU in order of placement, free memory slices included.

    With a moment the rows are of then, and their phases too.
    """
    items = gpu.blocked if isinstance(gpu, GpuState) else gpu.blocked.all()
    blocked = [Interval(item.start, item.size, BLOCKED, detail=item.reason) for item in items]
    return lay_out(gpu.memory_slices, [_interval(row, moment) for row in rows], blocked)


def _interval(row: MigReservation, moment: datetime | None) -> Interval:
    state, detail = row.phase, row.mig_uuid
    if moment is not None:
        state = str(getattr(row, "phase_then", row.phase))
        was_realized = row.realized_at is not None and row.realized_at <= moment
        detail = row.mig_uuid if was_realized else ""
    return Interval(row.start, row.size, state, row.profile, row.namespace, row.pod, detail)


def masked(item: Interval, seen: Visibility) -> Interval:
    """The interval as a caller may see it: taken, but not by whom, as what, or how far it is."""
    if item.state == FREE or seen.everything:
        return item
    if item.state != BLOCKED and seen.sees(item.namespace):
        return item
    return Interval(item.start, item.size, BLOCKED if item.state == BLOCKED else UNAVAILABLE)


def draw(gpu: Gpu | GpuState, model: str, found: Sequence[Interval]) -> str:
    """SVG; overlapping intervals are drawn in rows below each other."""
    rows: list[int] = []
    parts: list[str] = []
    for item in found:
        row = next((n for n, end in enumerate(rows) if end <= item.start), len(rows))
        rows[row : row + 1] = [item.start + item.size]
        parts.append(_box(item, row))
    width, height = gpu.memory_slices * WIDTH, max(len(rows), 1) * HEIGHT
    title = escape(f"{gpu.node.name} GPU {gpu.index} {model}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><title>{title}</title>{"".join(parts)}</svg>\n'
    )


def _box(item: Interval, row: int) -> str:
    x, y, width = item.start * WIDTH, row * HEIGHT, item.size * WIDTH
    words = [item.profile, item.state, f"{item.start}:{item.size}"]
    pod = f"{item.namespace}/{item.pod}" if item.pod else ""
    text = " ".join(word for word in (*words, pod, item.detail) if word)
    return (
        f"<g><title>{escape(text)}</title>"
        f'<rect x="{x + 1}" y="{y + 1}" width="{width - 2}" height="{HEIGHT - 2}" '
        f'fill={quoteattr(FILLS[item.state])} stroke="#404040"/>'
        f'<text x="{x + 6}" y="{y + 28}" font-family="sans-serif" font-size="11" '
        f'fill="#111111">{escape(item.profile or item.state)}</text></g>'
    )
