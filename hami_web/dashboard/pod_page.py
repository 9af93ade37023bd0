"""The page of one Pod: why it waits, what it has, and how long each step took."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import DatabaseError
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from hami_web.access.declared import needs
from hami_web.access.identity import visibility_of
from hami_web.access.roles import Verb
from hami_web.access.visibility import UNAVAILABLE
from hami_web.dashboard import slice_map
from hami_web.dashboard.cells import GpuRow
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.pages import missing, respond
from hami_web.dashboard.presentation import GpuView
from hami_web.dashboard.seen import seen_map
from hami_web.dashboard.spent import SHOWN_DAYS, spent
from hami_web.dashboard.wording import mebibytes, outcome_word, phase_word, reason_words, step_word
from hami_web.history.decisions import Said, said_of
from hami_web.reservations.models import MigReservation

logger = logging.getLogger(__name__)

ATTEMPTS_MAX: Final = 50
RESERVATIONS_MAX: Final = 100
Sees = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a reservation's life: when it was done, and how long it took in seconds."""

    word: str
    at: datetime | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Life:
    """One device of the Pod with its steps."""

    row: MigReservation
    phase: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class GpuLine:
    """Why one GPU does not take the Pod."""

    node: str
    gpu_uuid: str
    index: int | None
    code: str
    words: str
    free: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One answer of the extender or of kube-scheduler, and how often it was given."""

    said: Said
    outcome: str
    words: str


@dataclass(frozen=True, slots=True)
class Explained:
    """The newest refusal in full: GPUs, and what came closest."""

    at: datetime
    lines: tuple[GpuLine, ...]
    nearest: str
    smaller: str
    smaller_profile: str


@needs(Verb.READ)
@require_safe
def page(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """A Pod that waits, runs or is gone; 404 where nothing is known of it."""
    shown = seen_map(request)
    sees = visibility_of(request).sees
    full = f"{namespace}/{name}"
    if shown is None:
        return missing(request, f"Pod {full}", shown)
    rows = [row for row in shown.rows.values() if _is_on(row, full)]
    waiting = next((pod for pod in shown.waiting if pod.pod == full), None)
    attempts, lives = _attempts(namespace, name), _lives(namespace, name)
    if not (rows or waiting or attempts or lives):
        return missing(request, f"Pod {full}", shown)
    context = {
        "pod": full,
        "namespace": namespace,
        "used": spent(Q(namespace=namespace, pod=name), timezone.now(), SHOWN_DAYS),
        "waiting": waiting,
        "rows": [GpuView(row) for row in rows],
        "attempts": attempts,
        "explained": explained_of(attempts or (), shown, sees),
        "lives": lives,
        "patterns": slice_map.render_patterns(),
    }
    return respond(request, "dashboard/pod.html", context, current=shown)


def explained_of(attempts: tuple[Attempt, ...], shown: ClusterMap, sees: Sees) -> Explained | None:
    """The newest attempt that was explained, if there is one."""
    for attempt in attempts:
        body = attempt.said.explanation
        if isinstance(body, Mapping) and body.get("nodes") is not None:
            nearest = body.get("nearest")
            smaller = nearest.get("smaller") if isinstance(nearest, Mapping) else None
            return Explained(
                at=attempt.said.last_at,
                lines=tuple(_lines(body, shown)),
                nearest=_nearest(nearest, sees) if isinstance(nearest, Mapping) else "",
                smaller=_smaller(smaller) if smaller else "",
                smaller_profile=smaller["profile"] if smaller else "",
            )
    return None


def _is_on(row: GpuRow, pod: str) -> bool:
    return any(pod in cell.pod.split(", ") for cell in row.cells)


def _attempts(namespace: str, name: str) -> tuple[Attempt, ...] | None:
    """What was said of the Pod, newest first, two queries; None where it cannot be read."""
    try:
        said = said_of(namespace, name, limit=ATTEMPTS_MAX)
    except DatabaseError as error:
        logger.warning("Pod %s/%s: the mirror cannot be read: %s", namespace, name, error)
        return None
    return tuple(
        Attempt(item, outcome_word(item.outcome), reason_words(item.code) if item.code else "")
        for item in said
    )


def _lives(namespace: str, name: str) -> tuple[Life, ...] | None:
    """The Pod's reservations, newest first, one query; None where they cannot be read."""
    rows = MigReservation.objects.filter(namespace=namespace, pod=name)[:RESERVATIONS_MAX]
    try:
        return tuple(Life(row, phase_word(row.phase), _steps(row)) for row in rows)
    except DatabaseError:
        return None


def _steps(row: MigReservation) -> tuple[Step, ...]:
    took = row.steps_s
    steps = (
        Step(step_word("held"), row.held_at, None),
        Step(step_word("reserved"), row.reserved_at, took["hold_s"]),
        Step(step_word("realized"), row.realized_at, took["realize_s"]),
        Step(step_word("started"), row.started_at, took["start_s"]),
        Step(step_word("terminating"), row.terminating_at, None),
        Step(step_word("released"), row.released_at, took["terminate_s"]),
    )
    return tuple(step for step in steps if step.at is not None)


def _lines(body: Mapping[str, Any], shown: ClusterMap) -> list[GpuLine]:
    lines = []
    for node in body["nodes"]:
        if node["code"]:
            words = reason_words(node["code"])
            lines.append(GpuLine(node["node"], "", None, node["code"], words, ""))
        for gpu in node["gpus"]:
            row = shown.rows.get(gpu["gpu_uuid"])
            free = ""
            if gpu["memory_slices"] is not None:
                free = gettext("%(free)s of %(grid)s free") % {
                    "free": gpu["free_memory_slices"],
                    "grid": gpu["memory_slices"],
                }
            lines.append(
                GpuLine(
                    node["node"],
                    gpu["gpu_uuid"] if row else "",
                    row.index if row else None,
                    gpu["code"],
                    reason_words(gpu["code"]),
                    free,
                )
            )
    return lines


def _nearest(nearest: Mapping[str, Any], sees: Sees) -> str:
    owners = [
        f"{item['namespace']}/{item['name']}" if sees(item["namespace"]) else gettext(UNAVAILABLE)
        for item in nearest["reservations"]
    ]
    place = "" if nearest["start"] is None else f"{nearest['start']}:{nearest['size']}"
    verdict = (
        gettext("The free memory slices are scattered.")
        if nearest["fragmented"]
        else gettext("There is no capacity left, however the instances were moved.")
    )
    closest = gettext("%(profile)s would fit at %(place)s on %(node)s without %(owners)s.") % {
        "profile": nearest["profile"],
        "place": place or nearest["gpu_uuid"],
        "node": nearest["node"],
        "owners": ", ".join(dict.fromkeys(owners)),
    }
    return f"{verdict} {closest}"


def _smaller(smaller: Mapping[str, Any]) -> str:
    return gettext("%(profile)s (%(memory)s) would have fitted on %(node)s.") % {
        "profile": smaller["profile"],
        "memory": mebibytes(smaller["memory_mib"]),
        "node": smaller["node"],
    }
