"""The pages of taking nodes over: where each is, what is in the way, and the forms of its steps."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from django.db import DatabaseError
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from hami_web.access.audit import Actor
from hami_web.access.declared import needs
from hami_web.access.identity import caller_of, visibility_of
from hami_web.access.requests import actor_of
from hami_web.access.roles import Verb
from hami_web.access.visibility import UNAVAILABLE
from hami_web.cluster.errors import ClusterError
from hami_web.dashboard.actions import not_done
from hami_web.dashboard.pages import missing, respond
from hami_web.dashboard.seen import seen_map
from hami_web.handover.lifecycle import OVER
from hami_web.handover.models import HandoverEvent, NodeHandover, ProfileTest
from hami_web.handover.obstacles import Obstacle, decode_obstacles
from hami_web.handover.steps import BACK, FORWARD, WATCHED_ONLY, Direction, Step
from hami_web.handover.store import HandoverOpen, HandoverOver, OtherStep
from hami_web.handover.wording import (
    EVENTS,
    OUTCOMES,
    TRIALS,
    mend_of,
    step_about,
    step_title,
)
from hami_web.verbs import handover as verbs

logger = logging.getLogger(__name__)

EVENTS_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class StepView:
    """A step on the way: ``passed``, ``here`` or ``ahead``."""

    step: Step
    mark: str

    @property
    def title(self) -> str:
        return step_title(self.step)

    @property
    def about(self) -> str:
        return step_about(self.step)


@dataclass(frozen=True, slots=True)
class ObstacleView:
    """What is in the way, with what helps; ``hides`` for who may not see every namespace."""

    found: Obstacle
    node: str
    hides: bool

    @property
    def subject(self) -> str:
        return gettext(UNAVAILABLE) if self.hides else self.found.subject

    @property
    def evidence(self) -> str:
        return gettext(UNAVAILABLE) if self.hides else self.found.evidence

    @property
    def mend(self) -> str:
        if self.hides:
            return gettext(UNAVAILABLE)
        return mend_of(self.found.code, self.node, self.found.subject)


@dataclass(frozen=True, slots=True)
class HandoverView:
    """A take-over with its words."""

    row: NodeHandover
    hides: bool = False

    @property
    def outcome(self) -> str:
        return str(OUTCOMES[self.row.outcome])

    @property
    def title(self) -> str:
        return step_title(self.row.step)

    @property
    def fell_from(self) -> str:
        return step_title(self.row.regressed_from) if self.row.regressed_from else ""

    @property
    def steps(self) -> list[StepView]:
        """All of its direction; after the end all are passed, unless it was closed."""
        order = BACK if self.row.direction is Direction.BACK else FORWARD
        here = order.index(Step(self.row.step))
        whole = self.row.outcome in ("done", "rolled_back")
        marks = (
            "passed" if whole or place < here else "here" if place == here else "ahead"
            for place in range(len(order))
        )
        return [StepView(step, mark) for step, mark in zip(order, marks, strict=True)]

    @property
    def obstacles(self) -> list[ObstacleView]:
        found = decode_obstacles(self.row.obstacles)
        return [ObstacleView(item, self.row.node, self.hides) for item in found]

    @property
    def would_do(self) -> list[str]:
        """Lines of kubectl, of which the page makes a list."""
        return [gettext(UNAVAILABLE)] if self.hides and self.row.would_do else self.row.would_do

    @property
    def is_for_people(self) -> bool:
        """A step in which nothing is ours to do."""
        return self.row.step in WATCHED_ONLY


@dataclass(frozen=True, slots=True)
class TestView:
    """The test of a profile with its words."""

    __test__ = False

    row: ProfileTest

    @property
    def word(self) -> str:
        return str(TRIALS[self.row.state])

    @property
    def is_over(self) -> bool:
        return self.row.state in OVER

    @property
    def seconds(self) -> float:
        """How long all its states took together."""
        return round(float(sum(self.row.took_s.values())), 1)


@dataclass(frozen=True, slots=True)
class EventView:
    """Something that happened, with its words."""

    row: HandoverEvent
    hides: bool

    @property
    def word(self) -> str:
        return str(EVENTS[self.row.kind])

    @property
    def title(self) -> str:
        return step_title(self.row.step)

    @property
    def text(self) -> str:
        return gettext(UNAVAILABLE) if self.hides and self.row.text else self.row.text


def shown_handovers(limit: int) -> list[HandoverView]:
    """Those that go on first, then the newest; one query. Raises DatabaseError."""
    newest = F("ended_at").desc(nulls_first=True)
    return [HandoverView(row) for row in NodeHandover.objects.order_by(newest, "-pk")[:limit]]


@needs(Verb.READ)
@require_safe
def page(request: HttpRequest, pk: int) -> HttpResponse:
    """One take-over: its steps, what is in the way, its tests, and what happened."""
    current = seen_map(request)
    try:
        row = NodeHandover.objects.filter(pk=pk).first()
        if row is None:
            return missing(request, gettext("such take-over"), current)
        hides = not visibility_of(request).everything
        tests = [TestView(test) for test in row.tests.all()]
        events = list(row.events.order_by("-pk")[:EVENTS_SHOWN])
    except DatabaseError as error:
        logger.warning("take-overs cannot be read: %s", error)
        return respond(
            request,
            "dashboard/handover.html",
            {"readable": False},
            current=current,
            status=HTTPStatus.SERVICE_UNAVAILABLE,
        )
    context = {
        "readable": True,
        "item": HandoverView(row, hides),
        "tests": tests,
        "events": [EventView(event, hides) for event in events],
        "may_lead": may_lead(request),
    }
    return respond(request, "dashboard/handover.html", context, current=current)


@needs(Verb.HAND_OVER)
@require_POST
def start(request: HttpRequest) -> HttpResponse:
    """Begin with a node; leads to its page, or to that of the one that is open."""
    node = request.POST.get("node", "").strip()[:253]
    direction = request.POST.get("direction", Direction.FORWARD.value)
    if direction not in list(Direction):
        return not_done(request, f"direction: {direction[:50]!r}", 400)
    if not node or "\0" in node or "/" in node:
        return not_done(request, gettext("Name a node of the cluster."), 400)
    try:
        row = verbs.start(actor_of(request), node, Direction(direction))
    except HandoverOpen as error:
        row = error.handover
    except ClusterError as error:
        return not_done(request, str(error), 409)
    except DatabaseError as error:
        return not_done(request, str(error), 503)
    return redirect("dashboard:handover", pk=row.pk)


@needs(Verb.HAND_OVER)
@require_POST
def approve(request: HttpRequest, pk: int) -> HttpResponse:
    """Approve the step that the form showed."""
    return _changed(request, pk, lambda actor: verbs.approve(actor, pk, _step(request)))


@needs(Verb.HAND_OVER)
@require_POST
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    """Take the approval back."""
    return _changed(request, pk, lambda actor: verbs.withdraw(actor, pk, _step(request)))


@needs(Verb.HAND_OVER)
@require_POST
def turn_back(request: HttpRequest, pk: int) -> HttpResponse:
    """Lead the node back."""
    return _changed(request, pk, lambda actor: verbs.turn_back(actor, pk))


@needs(Verb.HAND_OVER)
@require_POST
def close(request: HttpRequest, pk: int) -> HttpResponse:
    """End it where it is."""
    return _changed(request, pk, lambda actor: verbs.close(actor, pk))


def may_lead(request: HttpRequest) -> bool:
    """Whether the caller may take nodes over."""
    caller = caller_of(request)
    return caller is not None and caller.may(Verb.HAND_OVER)


def _step(request: HttpRequest) -> str:
    return request.POST.get("step", "")[:50]


def _changed(
    request: HttpRequest, pk: int, change: Callable[[Actor], NodeHandover]
) -> HttpResponse:
    try:
        change(actor_of(request))
    except NodeHandover.DoesNotExist:
        return missing(request, gettext("such take-over"), seen_map(request))
    except (HandoverOver, OtherStep) as error:
        return not_done(request, str(error), 409)
    except DatabaseError as error:
        return not_done(request, str(error), 503)
    return redirect("dashboard:handover", pk=pk)
