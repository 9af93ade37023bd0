"""One look at every take-over that is open: move what can move, do what was approved."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import Q

from hami_web.access.audit import SYSTEM, Action, audited
from hami_web.cluster.errors import ClusterError, Forbidden
from hami_web.handover import store
from hami_web.handover.actions import NodeChanged, Writer
from hami_web.handover.changes import NOTHING, Change
from hami_web.handover.decide import Await, End, Hold, Move, Perform, decide
from hami_web.handover.models import EventKind, NodeHandover, Outcome
from hami_web.handover.obstacles import Obstacle, ObstacleCode, decode_obstacles
from hami_web.handover.sight import Sight, sight_of
from hami_web.handover.steps import FORWARD, Step
from hami_web.handover.store import UNDER_WAY
from hami_web.handover.testing import Driver
from hami_web.migration.facts import ClusterFacts

logger = logging.getLogger(__name__)

LOOK_AGAIN = timedelta(seconds=10)
"""How old a look may get while nothing waits for us; approved steps are looked at every time."""
TRY_AGAIN = timedelta(seconds=30)
"""How long after a refusal the same is tried again: a budget or a right changes by people."""
_REFUSALS = frozenset(
    {ObstacleCode.EVICTION_REFUSED, ObstacleCode.NOT_PERMITTED, ObstacleCode.NOT_DONE}
)


@dataclass(frozen=True, slots=True)
class Look:
    """What a look gives: the facts that concern a node, read now, and a writer for its cluster."""

    facts: Callable[[str], ClusterFacts]
    driver: Driver

    @property
    def writer(self) -> Writer:
        return self.driver.writer


def due(now: datetime) -> bool:
    """Whether some take-over is to be looked at; one query, the usual answer is no."""
    hurried = Q(approved_at__isnull=False) | Q(looked_at=None) | Q(tests__state__in=UNDER_WAY)
    stale = Q(looked_at__lt=now - LOOK_AGAIN)
    return NodeHandover.objects.filter(hurried | stale, outcome=Outcome.OPEN).exists()


def advance(look: Callable[[], AbstractContextManager[Look]]) -> int:
    """Look once and bring every open take-over as far as it goes; returns how many there are."""
    if not due(datetime.now(UTC)):
        return 0
    with look() as seen:
        rows = list(NodeHandover.objects.filter(outcome=Outcome.OPEN).order_by("pk"))
        for row in rows:
            try:
                if not _was_refused(row):
                    _bring_on(row, seen)
            except store.Overtaken:
                logger.info("take-over %d was written since; the next look decides", row.pk)
    return len(rows)


def _bring_on(row: NodeHandover, look: Look) -> None:
    sight = sight_of(look.facts(row.node), row.node)
    now = datetime.now(UTC)
    if _calls_off(row, sight) and not _called_off(row, sight, look, now):
        return
    # Each step is passed at most once in a look, so that this ends.
    for _ in range(len(FORWARD)):
        decision = decide(store.standing_of(row, now), sight)
        match decision:
            case Hold(obstacles):
                store.show(row, obstacles, NOTHING, now)
                return
            case Move(step, lost):
                store.move(row, step, lost, now)
            case End():
                store.end(row, now)
                return
            case Await(obstacles, change):
                store.show(row, obstacles, change, now)
                return
            case Perform(change, obstacles):
                _perform(row, sight, change, obstacles, look)
                return


def _was_refused(row: NodeHandover) -> bool:
    """Whether the last try was refused a short time ago; an approval asks for another at once."""
    if row.looked_at is None or row.looked_at < datetime.now(UTC) - TRY_AGAIN:
        return False
    return any(item.code in _REFUSALS for item in decode_obstacles(row.obstacles))


def _calls_off(row: NodeHandover, sight: Sight) -> bool:
    """Whether a test that is under way has lost its approval, or its step."""
    if row.step == Step.TEST and row.approved_at is not None:
        return False
    return not sight.unread and row.tests.filter(state__in=UNDER_WAY).exists()


def _called_off(row: NodeHandover, sight: Sight, look: Look, now: datetime) -> bool:
    try:
        return not look.driver.call_off(row, sight, now)
    except ClusterError as error:
        store.show(row, [_refused(row, error)], NOTHING, now)
        return False


def _perform(
    row: NodeHandover, sight: Sight, change: Change, rest: tuple[Obstacle, ...], look: Look
) -> None:
    now = datetime.now(UTC)
    try:
        if change.tests:
            look.driver.drive(row, sight, now)
            refused: tuple[Obstacle, ...] = ()
        else:
            refused = _change(row, sight, change, look.writer)
    except NodeChanged:
        logger.info("node %s changed since it was looked at; the next look decides", row.node)
        return
    except ClusterError as error:
        refused = (_refused(row, error),)
    store.show(row, (*refused, *rest), change, datetime.now(UTC))


def _change(
    row: NodeHandover, sight: Sight, change: Change, writer: Writer
) -> tuple[Obstacle, ...]:
    """Keep what we change, record it, change it; a kill in between repeats it."""
    assert sight.node is not None  # noqa: S101  # decide() holds without a node
    if row.step in FORWARD:
        store.remember(row, {key: sight.labels.get(key) for key in change.labels})
    lines = list(change.lines())
    action = Action("handover.change", "node", row.node, after={"step": row.step, "do": lines})
    with audited(SYSTEM, action) as progress:
        progress.detail = f"approved by {row.approved_by}"
        refused = writer.apply(sight.node, change)
    kind = EventKind.REFUSED if refused else EventKind.CHANGED
    store.tell(row, kind, datetime.now(UTC), text="; ".join(lines))
    return refused


def _refused(row: NodeHandover, error: ClusterError) -> Obstacle:
    denied = isinstance(error, Forbidden)
    code = ObstacleCode.NOT_PERMITTED if denied else ObstacleCode.NOT_DONE
    return Obstacle(code, f"Node {row.node}", str(error))
