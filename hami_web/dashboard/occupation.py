"""Who had which memory slices of one GPU and when: from the mirror's intervals to a picture."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from typing import Final

from django.db import DatabaseError
from django.db.models import Q
from django.utils.safestring import SafeString, mark_safe

from hami_web.dashboard.cells import CellState
from hami_web.dashboard.wording import state_word
from hami_web.reservations.models import LIVE, MigReservation

logger = logging.getLogger(__name__)

RANGE: Final = timedelta(hours=24)
ROWS_MAX: Final = 200
_SLICE_HEIGHT: Final = 18
_AXIS_HEIGHT: Final = 18
_TICKS: Final = 6


@dataclass(frozen=True, slots=True)
class Stay:
    """One reservation of the past or of now; ``pod`` and ``profile`` are empty where hidden."""

    pod: str
    profile: str
    placement: str
    start: int
    size: int
    reserved_at: datetime
    realized_at: datetime | None
    released_at: datetime | None

    @property
    def name(self) -> str:
        """The Pod's name, or a word in its place."""
        return self.pod or state_word(CellState.UNAVAILABLE)

    @property
    def state(self) -> CellState:
        """How it is drawn."""
        if not self.pod:
            return CellState.UNAVAILABLE
        return CellState.REALIZED if self.realized_at else CellState.BOUND

    @property
    def hours(self) -> float | None:
        """How long it lasted, in hours; None while it lasts."""
        if self.released_at is None:
            return None
        return (self.released_at - self.reserved_at).total_seconds() / 3600

    @property
    def seconds_to_realize(self) -> float | None:
        """From the reservation to the instance, in seconds."""
        if self.realized_at is None:
            return None
        return (self.realized_at - self.reserved_at).total_seconds()


@dataclass(frozen=True, slots=True)
class Occupation:
    """Stays on a GPU that touch ``[since, until)``, newest first."""

    since: datetime
    until: datetime
    stays: tuple[Stay, ...]
    complete: bool
    picture: SafeString


def occupation_of(
    gpu_uuid: str, grid: int, until: datetime, name: Callable[[str, str], str]
) -> Occupation | None:
    """The last day of a GPU, one query; None where the mirror cannot be read.

    ``name`` gives the shown name of a namespace's Pod, empty where it may not be seen.
    """
    since = until - RANGE
    rows = MigReservation.objects.filter(
        LIVE | Q(released_at__gt=since), gpu_uuid=gpu_uuid, reserved_at__lt=until
    ).order_by("-reserved_at", "-id")[: ROWS_MAX + 1]
    try:
        found = [_stay(row, name) for row in rows]
    except DatabaseError as error:
        logger.warning("history of GPU %s: the mirror cannot be read: %s", gpu_uuid, error)
        return None
    stays = tuple(found[:ROWS_MAX])
    picture = draw(stays, grid, since, until)
    return Occupation(since, until, stays, len(found) <= ROWS_MAX, picture)


def draw(stays: Iterable[Stay], grid: int, since: datetime, until: datetime) -> SafeString:
    """Memory slices downwards, time to the right; text in it is escaped here."""
    height = grid * _SLICE_HEIGHT
    lines = "".join(
        f'<rect class="memory-slice" y="{number * _SLICE_HEIGHT}" width="100%" '
        f'height="{_SLICE_HEIGHT}"/>'
        for number in range(grid)
    )
    numbers = "".join(
        f'<text class="number" x="-8" y="{number * _SLICE_HEIGHT + 13}">{number}</text>'
        for number in range(grid)
    )
    bars = "".join(_bar(stay, since, until) for stay in stays)
    ticks = "".join(_tick(number, since, until, height) for number in range(_TICKS + 1))
    return mark_safe(  # noqa: S308 - escaped piece by piece
        f'<svg class="occupation" width="100%" height="{height + _AXIS_HEIGHT}" '
        f'aria-hidden="true">{lines}{ticks}{numbers}{bars}</svg>'
    )


def _bar(stay: Stay, since: datetime, until: datetime) -> str:
    begin = max(stay.reserved_at, since)
    end = min(stay.released_at or until, until)
    x, width = _share(begin, since, until), _share(end, since, until) - _share(begin, since, until)
    parts = (stay.pod, stay.profile, stay.placement, state_word(stay.state))
    title = escape(", ".join(part for part in parts if part))
    top, tall = stay.start * _SLICE_HEIGHT, stay.size * _SLICE_HEIGHT
    return (
        f'<svg class="cell {stay.state}" x="{x:.4g}%" y="{top}" width="{max(width, 0.15):.4g}%" '
        f'height="{tall}"><title>{title}</title>'
        f'<rect class="ground" width="100%" height="{tall}"/>'
        f'<text class="pod" x="5" y="13">{escape(stay.name.rpartition("/")[2])}</text></svg>'
    )


def _tick(number: int, since: datetime, until: datetime, height: int) -> str:
    at = since + (until - since) * number / _TICKS
    x = number * 100 / _TICKS
    anchor = "start" if number == 0 else "end" if number == _TICKS else "middle"
    return (
        f'<text class="tick" x="{x:.4g}%" y="{height + 14}" text-anchor="{anchor}">'
        f'<tspan data-time="{at.isoformat()}">{at:%H:%M}</tspan></text>'
    )


def _share(at: datetime, since: datetime, until: datetime) -> float:
    return (at - since) / (until - since) * 100


def _stay(row: MigReservation, name: Callable[[str, str], str]) -> Stay:
    pod = name(row.namespace, row.pod)
    return Stay(
        pod,
        row.profile if pod else "",
        str(row.placement),
        row.start,
        row.size,
        row.reserved_at,
        row.realized_at,
        row.released_at,
    )
