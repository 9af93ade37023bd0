"""The page of drift: what the mirror had wrong, and what each source says of the place now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from hami_web.access.declared import needs
from hami_web.access.identity import visibility_of
from hami_web.access.roles import Verb
from hami_web.core.errors import InvalidField
from hami_web.core.placement import Placement
from hami_web.dashboard import columns, downloads
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.history_wording import cause_words, kind_words
from hami_web.dashboard.newest import SHOWN_MAX, list_page, newest
from hami_web.dashboard.pages import refused
from hami_web.dashboard.seen import seen_map
from hami_web.dashboard.sheets import drift_sheet
from hami_web.dashboard.side_by_side import Side, sides_on
from hami_web.history.models import Drift, Reconciliation
from hami_web.scheduling.records import GpuRecord

_PLACE: Final = re.compile(r"(?:^| )(\S+) (\d{1,3}):(\d{1,3})$", re.ASCII)
"""How the keys of reservations and of blocked memory slices end: GPU and placement."""


@dataclass(frozen=True, slots=True)
class DriftLine:
    """One correction with its words; ``side`` is what each source says of the place now.

    ``gpu_uuid`` is empty where the correction is of no GPU, ``side`` None where it is of no place.
    """

    drift: Drift
    cause: str
    kind: str
    gpu_uuid: str
    side: Side | None


@needs(Verb.READ)
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """What reconciliation corrected, newest first, and when it last compared.

    503 where that cannot be read.
    """
    shown = seen_map(request)
    try:
        wanted = downloads.asked_format(request)
        chosen = columns.asked_columns(request, columns.DRIFT)
    except InvalidField as error:
        return refused(request, error, shown)
    everything = visibility_of(request).everything
    found = newest(Drift.objects.all()) if everything else []
    compared = newest(Reconciliation.objects.all()) if found is not None else None
    lines = lines_of((found or ())[:SHOWN_MAX], shown)
    if wanted and found is not None:
        sheet = drift_sheet((line.drift, line.side) for line in lines)
        return downloads.answer(sheet, wanted, shown.version if shown else 0)
    context = {
        "downloads": downloads.links(request),
        "columns": chosen,
        "lines": lines,
        "last": compared[0] if compared else None,
        "hidden": not everything,
        "more": len(found or ()) > SHOWN_MAX,
    }
    return list_page(request, "dashboard/drift.html", context, readable=compared is not None)


def lines_of(rows: Iterable[Drift], shown: ClusterMap | None) -> list[DriftLine]:
    """Corrections with the three sources as they are now; for callers who see every namespace.

    Two queries, none where no correction is of a place.
    """
    rows = list(rows)
    places = {row.pk: place_of(row) for row in rows}
    records = {place[0]: _record(shown, place[0]) for place in places.values() if place is not None}
    sides = (sides_on(records, lambda _: True) if records else {}) or {}
    return [_line(row, places[row.pk], sides, shown) for row in rows]


def _record(shown: ClusterMap | None, uuid: str) -> GpuRecord | None:
    row = shown.rows.get(uuid) if shown else None
    return shown.gpu_record(row) if shown and row else None


def _line(
    row: Drift,
    place: tuple[str, Placement] | None,
    sides: Mapping[str, Mapping[Placement, Side]],
    shown: ClusterMap | None,
) -> DriftLine:
    uuid, side = (row.key if row.entity == "gpu" else ""), None
    if place is not None:
        uuid, placement = place
        if uuid in sides:
            side = sides[uuid].get(placement, Side(placement, "", "", "", ""))
    linked = uuid if shown and uuid in shown.rows else ""
    return DriftLine(row, cause_words(row.cause), kind_words(row.kind), linked, side)


def place_of(row: Drift) -> tuple[str, Placement] | None:
    """GPU and placement that a correction is about; None where it is of something larger."""
    match = _PLACE.search(row.key) if row.entity in ("reservation", "hold", "blocked") else None
    if match is None or int(match[3]) < 1:
        return None
    return match[1], Placement(int(match[2]), int(match[3]))
