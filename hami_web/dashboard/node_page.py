"""The page of one node: its GPUs, what they can be cut into, and the room on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from hami_web.access.declared import needs
from hami_web.access.roles import Verb
from hami_web.core.capability import ProfileCapability
from hami_web.core.errors import InvalidField
from hami_web.dashboard import downloads, slice_map
from hami_web.dashboard.moments import AGO, asked_moment
from hami_web.dashboard.pages import missing, refused, respond
from hami_web.dashboard.past_page import node_at
from hami_web.dashboard.placement_sheet import placements_sheet
from hami_web.dashboard.presentation import MapView, NodeView, legend
from hami_web.dashboard.room import node_heat
from hami_web.dashboard.seen import seen_map
from hami_web.dashboard.spent import SHOWN_DAYS, spent
from hami_web.dashboard.wording import mebibytes
from hami_web.scheduling.records import GpuRecord


@dataclass(frozen=True, slots=True)
class OfferedProfile:
    """One profile of a model, and how many GPUs of the node offer it."""

    model: str
    profile: ProfileCapability
    gpus: int

    @property
    def memory(self) -> str:
        return mebibytes(self.profile.memory_mib)

    @property
    def placements(self) -> str:
        """Legal placements, lowest first."""
        return ", ".join(map(str, sorted(self.profile.placements)))


@needs(Verb.READ)
@require_safe
def page(request: HttpRequest, name: str) -> HttpResponse:
    """One node by name; 404 where the cluster does not have it, 503 before it is known.

    ``at`` shows it as it was.
    """
    current, now = seen_map(request), timezone.now()
    try:
        at = asked_moment(request, now)
        wanted = downloads.asked_format(request, downloads.DRAWN)
        theme = downloads.asked_theme(request)
    except InvalidField as error:
        return refused(request, error, current)
    if at is not None:
        return node_at(request, name, at)
    block = current.blocks.get(name) if current else None
    record = current.records.get(name) if current else None
    if current is None or block is None or record is None:
        return missing(request, name, current)
    if wanted == "svg":
        return downloads.picture([block], "node", theme, current.version)
    if wanted:
        return downloads.answer(placements_sheet("node", block.rows), wanted, current.version)
    context = {
        "downloads": downloads.links(request, picture=True),
        "node": NodeView(block),
        "record": record,
        "heat": node_heat(record),
        "profiles": offered_profiles(record.gpus),
        "used": spent(Q(node=name), now, SHOWN_DAYS),
        "ago": now - AGO,
        "legend": legend(MapView(current)),
        "patterns": slice_map.render_patterns(),
    }
    return respond(request, "dashboard/node_page.html", context, current=current)


def offered_profiles(gpus: Iterable[GpuRecord]) -> list[OfferedProfile]:
    """What the GPUs can be cut into: by model, smallest profile first."""
    counts: dict[tuple[str, ProfileCapability], int] = {}
    for gpu in gpus:
        for profile in gpu.capability.profiles:
            key = (gpu.capability.model, profile)
            counts[key] = counts.get(key, 0) + 1
    ordered = sorted(counts, key=lambda key: (key[0], key[1].order))
    return [OfferedProfile(model, profile, counts[model, profile]) for model, profile in ordered]
