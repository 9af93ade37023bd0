"""What one GPU can be cut into: each profile with its legal placements, as a picture and in words.

The picture has one row for each profile. Placements of one profile that overlap are drawn in
lanes below each other; where an instance would fit now is told by form and word, not by colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from hami_web.core.capability import ProfileCapability
from hami_web.core.placement import Placement
from hami_web.dashboard.cells import Cell, CellState, GpuRow
from hami_web.dashboard.slice_map import share
from hami_web.dashboard.wording import mebibytes
from hami_web.scheduling.records import GpuRecord

_LANE_HEIGHT: Final = 26


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """One profile of one GPU. ``now`` is how many more instances fit, if only this profile is
    taken; None on a GPU that takes no new work."""

    profile: ProfileCapability
    now: int | None
    picture: SafeString

    @property
    def name(self) -> str:
        return self.profile.name

    @property
    def memory(self) -> str:
        return mebibytes(self.profile.memory_mib)

    @property
    def cores(self) -> str:
        """Compute slices, and the share of the GPU's multiprocessors."""
        return f"{self.profile.compute_slices} · {self.profile.core_percent} %"

    @property
    def placements(self) -> str:
        return ", ".join(map(str, sorted(self.profile.placements)))


def profile_lines(record: GpuRecord, row: GpuRow) -> list[ProfileLine]:
    """Every profile of the GPU, smallest first, with what the row's cells leave of it."""
    opened = record.refusal is None
    lines = []
    for shape in record.table.shapes:
        fitting = {fit.placement for fit in record.table.fits(record.state, shape)}
        picture = _draw(shape.placements, fitting if opened else set(), row)
        now = record.table.most(record.state, shape) if opened else None
        lines.append(ProfileLine(shape.profile, now, picture))
    return lines


def lanes(placements: Iterable[Placement]) -> list[list[Placement]]:
    """Placements in as few lanes as they need so that none overlaps another of its lane."""
    found: list[list[Placement]] = []
    for placement in sorted(placements):
        lane = next((lane for lane in found if lane[-1].end <= placement.start), None)
        if lane is None:
            found.append([placement])
        else:
            lane.append(placement)
    return found


def _draw(placements: Sequence[Placement], fitting: set[Placement], row: GpuRow) -> SafeString:
    rows = lanes(placements)
    shapes = "".join(
        _placement(placement, number * _LANE_HEIGHT, row, fits=placement in fitting)
        for number, lane in enumerate(rows)
        for placement in lane
    )
    height = max(len(rows), 1) * _LANE_HEIGHT
    return mark_safe(  # noqa: S308 - escaped piece by piece
        f'<svg class="legal" width="100%" height="{height}" aria-hidden="true">{shapes}</svg>'
    )


def _placement(placement: Placement, top: int, row: GpuRow, *, fits: bool) -> str:
    start, width = share(placement.start, row.grid), share(placement.size, row.grid)
    word = gettext("fits") if fits else _taken_by(placement, row.cells)
    tip = escape(f"{placement}: {word}")
    state = "fits" if fits else "taken"
    return (
        f'<svg class="{state}" x="{start}" y="{top}" width="{width}" height="{_LANE_HEIGHT}">'
        f"<title>{tip}</title>"
        f'<rect class="body" width="100%" height="{_LANE_HEIGHT}"/>'
        f'<text x="8" y="17">{placement}</text></svg>'
    )


def _taken_by(placement: Placement, cells: Iterable[Cell]) -> str:
    over = [
        cell.pod or cell.detail or str(cell.placement)
        for cell in cells
        if cell.state is not CellState.FREE and cell.placement.overlaps(placement)
    ]
    if not over:
        return gettext("not possible beside what is there")
    return gettext("taken by %(owners)s") % {"owners": ", ".join(dict.fromkeys(over))}
