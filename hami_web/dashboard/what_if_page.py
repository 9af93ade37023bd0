"""The page of what-if: where Pods that do not exist yet would go, or what is in the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from hami_web.access.declared import needs
from hami_web.access.identity import visibility_of
from hami_web.access.roles import Verb
from hami_web.access.visibility import UNAVAILABLE
from hami_web.core.errors import InvalidField
from hami_web.core.policy import parse_scheduling_policy
from hami_web.dashboard import downloads, slice_map
from hami_web.dashboard.cells import Cell
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.installed import installed_map
from hami_web.dashboard.pages import missing, refused, respond
from hami_web.dashboard.plan_sheets import answer_sheet
from hami_web.dashboard.planned import grouped, planned_cell, pod_name, with_planned
from hami_web.dashboard.presentation import GpuView
from hami_web.dashboard.seen import seen_map
from hami_web.dashboard.wish import Wish, parse_wish
from hami_web.dashboard.wording import mebibytes, reason_words
from hami_web.planning.whatif import Answer, Obstacle, Question, Suggestion, ask
from hami_web.scheduling.records import Claim

Sees = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class PlaceLine:
    """One device of one Pod that has a place."""

    number: int
    node: str
    gpu_uuid: str
    index: int
    profile: str
    placement: str


@dataclass(frozen=True, slots=True)
class ReasonLine:
    """One reason and the nodes that have it."""

    code: str
    words: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BlockerLine:
    """One reservation that would have to end."""

    pod: str
    profile: str
    placement: str


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Why the next Pod has no place, for the template."""

    sentence: str
    reasons: tuple[ReasonLine, ...]
    gpu: GpuView | None
    place: str
    blockers: tuple[BlockerLine, ...]
    smaller: str
    smaller_wish: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer for the template."""

    wish: Wish
    placed: int
    places: tuple[PlaceLine, ...]
    rows: tuple[GpuView, ...]
    hindrance: Hindrance | None


@needs(Verb.WHAT_IF)
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Ask, and answer over the newest state; 400 for a wish that cannot be understood."""
    current, shown = installed_map().current(), seen_map(request)
    if current is None or shown is None:
        return missing(request, "", None)
    text = request.GET.get("wish", "").strip()
    devices = request.GET.get("devices", "1")
    context: dict[str, object] = {"wish": text, "devices": devices}
    try:
        wanted = downloads.asked_format(request)
    except InvalidField as error:
        return refused(request, error, shown)
    try:
        asked = _asked(text, devices, current) if text else None
    except InvalidField as error:
        context["error"] = error
        return respond(request, "dashboard/what_if.html", context, current=shown, status=400)
    sees = visibility_of(request).sees
    if wanted:
        sheet = answer_sheet(asked[1] if asked else None, shown, sees)
        return downloads.answer(sheet, wanted, shown.version)
    if asked:
        context["downloads"] = downloads.links(request)
        context["outcome"] = outcome_of(*asked, shown, sees)
        context["patterns"] = slice_map.render_patterns()
    return respond(request, "dashboard/what_if.html", context, current=shown)


def _asked(text: str, devices: str, current: ClusterMap) -> tuple[Wish, Answer]:
    """A wish and the answer over all there is. Raises InvalidField."""
    wish = parse_wish(text, devices)
    policy = parse_scheduling_policy(settings.SCHEDULING_POLICY)
    return wish, ask(current.records, Question(wish.request(), wish.pods), policy)


def outcome_of(wish: Wish, answer: Answer, shown: ClusterMap, sees: Sees) -> Outcome:
    """The answer with names and pictures; ``shown`` is the map as the caller may see it."""
    places, planned = [], []
    for number, suggestion in enumerate(answer.placed, 1):
        for line, cell in _places(number, suggestion, shown, several=wish.pods > 1):
            places.append(line)
            planned.append((line.gpu_uuid, cell))
    rows = [
        GpuView(with_planned(shown.rows[uuid], cells))
        for uuid, cells in grouped(planned).items()
        if uuid in shown.rows
    ]
    hindrance = _hindrance(answer.obstacle, shown, sees) if answer.obstacle else None
    return Outcome(wish, len(answer.placed), tuple(places), tuple(rows), hindrance)


def _places(
    number: int, suggestion: Suggestion, shown: ClusterMap, *, several: bool
) -> list[tuple[PlaceLine, Cell]]:
    name = gettext("this Pod")
    if several:
        name = gettext("Pod %(number)d of these") % {"number": number}
    found = []
    for item in suggestion.choice.reservations:
        row = shown.rows.get(item.gpu_uuid)
        index = row.index if row else 0
        line = PlaceLine(
            number, suggestion.node, item.gpu_uuid, index, item.profile, str(item.placement)
        )
        found.append((line, planned_cell(item.placement, item.profile, name)))
    return found


def _hindrance(obstacle: Obstacle, shown: ClusterMap, sees: Sees) -> Hindrance:
    by_size = sorted(obstacle.nodes.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    reasons = tuple(ReasonLine(code, reason_words(code), tuple(names)) for code, names in by_size)
    way, smaller = obstacle.in_the_way, obstacle.smaller
    row = shown.rows.get(way.blockers.gpu_uuid) if way else None
    words = ""
    if smaller:
        words = gettext("%(profile)s (%(memory)s) fits now at %(placement)s on %(node)s.") % {
            "profile": smaller.profile,
            "memory": mebibytes(smaller.memory_mib),
            "placement": smaller.placement,
            "node": smaller.node,
        }
    return Hindrance(
        sentence=_sentence(obstacle),
        reasons=reasons,
        gpu=GpuView(row) if row else None,
        place=_place(obstacle),
        blockers=tuple(_blocker(claim, sees) for claim in way.claims) if way else (),
        smaller=words,
        smaller_wish=smaller.profile if smaller else "",
    )


def _place(obstacle: Obstacle) -> str:
    way = obstacle.in_the_way
    if way is None or way.blockers.placement is None:
        return ""
    return f"{way.blockers.profile} {way.blockers.placement}"


def _sentence(obstacle: Obstacle) -> str:
    if obstacle.fragmented:
        return gettext(
            "There is enough free memory, but it is scattered: no legal placement is free."
        )
    if obstacle.fragmented is False:
        return gettext("There is not enough free memory, however the instances were moved.")
    if obstacle.in_the_way is not None:
        return gettext("No node has a place for all devices of such a Pod now.")
    return gettext("No node could take such a Pod, whatever ends on one GPU.")


def _blocker(claim: Claim, sees: Sees) -> BlockerLine:
    seen = sees(claim.pod.namespace)
    return BlockerLine(
        pod_name(claim, seen=seen, otherwise=gettext(UNAVAILABLE)),
        claim.profile if seen else "",
        str(claim.placement),
    )
