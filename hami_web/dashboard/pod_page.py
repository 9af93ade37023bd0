"""The page of one Pod: why it waits, what it has, and how long each step took."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from hami_web.access.declared import needs
from hami_web.access.identity import visibility_of
from hami_web.access.roles import Verb
from hami_web.access.visibility import UNAVAILABLE
from hami_web.core.errors import InvalidField
from hami_web.dashboard import downloads, slice_map
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.moments import AGO, asked_moment
from hami_web.dashboard.pages import missing, refused, respond
from hami_web.dashboard.past_page import pod_at
from hami_web.dashboard.pod_history import Attempt, Life, attempts_of, lives_of
from hami_web.dashboard.presentation import GpuView
from hami_web.dashboard.seen import seen_map
from hami_web.dashboard.sheets import pod_sheet
from hami_web.dashboard.spent import SHOWN_DAYS, spent
from hami_web.dashboard.wording import mebibytes, reason_words

Sees = Callable[[str], bool]


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
    """A Pod that waits, runs or is gone; 404 where nothing is known of it.

    ``at`` shows it as it was.
    """
    shown, now = seen_map(request), timezone.now()
    full = f"{namespace}/{name}"
    try:
        at = asked_moment(request, now)
        wanted = downloads.asked_format(request, downloads.DRAWN if at else downloads.ROWS)
        downloads.asked_theme(request)
    except InvalidField as error:
        return refused(request, error, shown)
    if at is not None:
        return pod_at(request, namespace, name, at)
    if shown is None:
        return missing(request, f"Pod {full}", shown)
    rows = [row for row in shown.rows.values() if row.has(full)]
    waiting = next((pod for pod in shown.waiting if pod.pod == full), None)
    attempts, lives = attempts_of(namespace, name), lives_of(namespace, name)
    if not (rows or waiting or attempts or lives):
        return missing(request, f"Pod {full}", shown)
    if wanted and attempts is not None and lives is not None:
        return downloads.answer(_sheet(namespace, name, lives, attempts), wanted, shown.version)
    context = {
        "pod": full,
        "namespace": namespace,
        "used": spent(Q(namespace=namespace, pod=name), now, SHOWN_DAYS),
        "waiting": waiting,
        "rows": [GpuView(row) for row in rows],
        "attempts": attempts,
        "explained": explained_of(attempts or (), shown, visibility_of(request).sees),
        "lives": lives,
        "ago": now - AGO,
        "downloads": downloads.links(request) if lives is not None else (),
        "patterns": slice_map.render_patterns(),
    }
    # A file that cannot be made is no page that tells why.
    status = HTTPStatus.SERVICE_UNAVAILABLE if wanted else HTTPStatus.OK
    return respond(request, "dashboard/pod.html", context, current=shown, status=status)


def _sheet(
    namespace: str, name: str, lives: tuple[Life, ...], attempts: tuple[Attempt, ...]
) -> downloads.Sheet:
    return pod_sheet(
        namespace, name, [life.row for life in lives], [attempt.said for attempt in attempts]
    )


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
