"""The page of drain plans: the fewest Pods to move for placements of a profile, as a picture."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from hami_web.access.declared import needs
from hami_web.access.identity import visibility_of
from hami_web.access.roles import Verb
from hami_web.access.visibility import UNAVAILABLE
from hami_web.core.errors import InvalidField
from hami_web.dashboard import downloads, slice_map
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.installed import installed_map
from hami_web.dashboard.pages import missing, refused, respond
from hami_web.dashboard.plan_sheets import plan_sheet
from hami_web.dashboard.planned import planned_cell, pod_name, with_planned, without
from hami_web.dashboard.presentation import GpuView
from hami_web.dashboard.seen import seen_map
from hami_web.planning.commands import commands_of
from hami_web.planning.drain import (
    MOVED,
    WANTED,
    DrainAnswer,
    DrainQuestion,
    GpuChange,
    Interval,
    Move,
    free_now,
    plan,
)
from hami_web.planning.records import read_protected
from hami_web.scheduling.records import NodeRecord

logger = logging.getLogger(__name__)

COUNT_MAX = 64
Sees = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class MoveLine:
    """One Pod to move, and where it would fit."""

    pod: str
    node: str
    priority: int
    held: str
    homes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangePicture:
    """One GPU before and after."""

    before: GpuView
    after: GpuView


@dataclass(frozen=True, slots=True)
class Plan:
    """An answer for the template; ``moves`` is empty where the placements are free already."""

    exact: bool
    moves: tuple[MoveLine, ...]
    leaving: int
    pictures: tuple[ChangePicture, ...]
    commands: tuple[str, ...]


@needs(Verb.PLAN_DRAIN)
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Ask for a plan, and show it; 400 for a profile that no GPU has or a count out of bounds."""
    current, shown = installed_map().current(), seen_map(request)
    if current is None or shown is None:
        return missing(request, "", None)
    profile, count = request.GET.get("profile", ""), request.GET.get("count", "1")
    offered = profiles_of(current.records.values())
    context: dict[str, object] = {"profile": profile, "count": count, "profiles": offered}
    try:
        wanted = downloads.asked_format(request)
    except InvalidField as error:
        return refused(request, error, shown)
    try:
        question = _question(profile, count, offered) if profile else None
    except InvalidField as error:
        context["error"] = error
        return respond(request, "dashboard/drain.html", context, current=shown, status=400)
    protected, answer = _protected() if question else frozenset[str](), None
    if question and protected is not None:
        answer = plan(current.records, question, protected)
    sees = visibility_of(request).sees
    if wanted and protected is not None:
        sheet = plan_sheet(answer, profile, shown, sees)
        return downloads.answer(sheet, wanted, shown.version)
    if question:
        context["free"], context["protected"] = free_now(current.records, profile), protected
        context["downloads"] = downloads.links(request) if answer else ()
        context["plan"] = plan_of(answer, shown, sees) if answer else None
        context["patterns"] = slice_map.render_patterns()
    # A file that cannot be made is no page that tells why.
    status = HTTPStatus.SERVICE_UNAVAILABLE if wanted else HTTPStatus.OK
    return respond(request, "dashboard/drain.html", context, current=shown, status=status)


def profiles_of(records: Iterable[NodeRecord]) -> list[str]:
    """Names of all profiles that GPUs offer, smallest memory first."""
    found = {
        (profile.memory_mib, profile.name)
        for record in records
        for gpu in record.gpus
        for profile in gpu.capability.profiles
    }
    return list(dict.fromkeys(name for _, name in sorted(found)))


def plan_of(answer: DrainAnswer, shown: ClusterMap, sees: Sees) -> Plan:
    """The plan with names and pictures; ``shown`` is the map as the caller may see it."""
    return Plan(
        exact=answer.exact,
        moves=tuple(_move(move, shown, sees) for move in answer.moves),
        leaving=len(answer.leaving),
        pictures=tuple(
            _picture(change, shown, sees)
            for change in answer.changes
            if change.gpu_uuid in shown.rows
        ),
        commands=commands_of(answer, sees),
    )


def _question(profile: str, count: str, offered: list[str]) -> DrainQuestion:
    if profile not in offered:
        raise InvalidField("profile", profile, ", ".join(offered) or gettext("no GPU has any"))
    digits = count.isascii() and count.isdigit() and len(count) < 4
    if not digits or not 1 <= int(count) <= COUNT_MAX:
        raise InvalidField("count", count, f"a whole number in 1…{COUNT_MAX}")
    return DrainQuestion(profile, int(count))


def _protected() -> frozenset[str] | None:
    """Pods that must not be evicted; None where that cannot be known, and nothing is planned."""
    try:
        return read_protected()
    except DatabaseError as error:
        logger.warning("drain plan: the mirror cannot be read: %s", error)
        return None


def _move(move: Move, shown: ClusterMap, sees: Sees) -> MoveLine:
    first = move.claims[0]
    seen = sees(first.pod.namespace)
    held = ", ".join(f"{claim.profile} {claim.placement}" for claim in move.claims)
    return MoveLine(
        pod=pod_name(first, seen=seen, otherwise=gettext(UNAVAILABLE)),
        node=move.node,
        priority=first.pod.priority if seen else 0,
        held=held if seen else "",
        homes=tuple(_spot(home[0], home[1], str(home[2]), shown) for home in move.homes),
    )


def _spot(node: str, uuid: str, placement: str, shown: ClusterMap) -> str:
    row = shown.rows.get(uuid)
    return f"{node} GPU {row.index if row else uuid} {placement}"


def _picture(change: GpuChange, shown: ClusterMap, sees: Sees) -> ChangePicture:
    row = shown.rows[change.gpu_uuid]
    kept = {item.placement for item in change.after if item.state not in (WANTED, MOVED)}
    gone = {item.placement for item in change.before} - kept
    new = [
        planned_cell(item.placement, item.profile, _name(item, sees))
        for item in change.after
        if item.state in (WANTED, MOVED)
    ]
    return ChangePicture(GpuView(row), GpuView(with_planned(without(row, gone), new)))


def _name(item: Interval, sees: Sees) -> str:
    if item.claim is None:
        return gettext("wanted")
    seen = sees(item.claim.pod.namespace)
    return pod_name(item.claim, seen=seen, otherwise=gettext(UNAVAILABLE))
