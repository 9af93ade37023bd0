"""Writes of take-overs: each proves that nobody wrote since it read, and says what happened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from django.db import IntegrityError
from django.db.models import F

from hami_web.core.mig_owner import PAUSED
from hami_web.handover.changes import Change
from hami_web.handover.lifecycle import OVER, Place, Trial, TrialState
from hami_web.handover.models import (
    TEXT_MAX,
    EventKind,
    HandoverEvent,
    NodeHandover,
    Outcome,
    ProfileTest,
)
from hami_web.handover.obstacles import Obstacle, encode_obstacles
from hami_web.handover.standing import Standing
from hami_web.handover.steps import BACK, FORWARD, Direction, Step, order_of
from hami_web.inventory.models import NAME_MAX
from hami_web.inventory.writing import writing

OPEN_STATES: Final = [s.value for s in TrialState if s not in OVER]
UNDER_WAY: Final = [s for s in OPEN_STATES if s != TrialState.WAITING]
"""States of a test that may have Pods in the cluster."""


class Overtaken(Exception):
    """Someone else wrote the take-over since it was read; nothing of ours is written."""


class HandoverOpen(Exception):
    """The node is being taken over already; ``handover`` is that row."""

    def __init__(self, handover: NodeHandover) -> None:
        self.handover = handover
        super().__init__(f"node {handover.node} is under way already, at step {handover.step}")


class HandoverOver(Exception):
    """It ended before."""


class OtherStep(Exception):
    """Not at the step that was meant."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody asks of a take-over, meaning one step of it."""

    pk: int
    step: str
    who: str


@dataclass(frozen=True, slots=True)
class Beginning:
    """A node as it is when its take-over, or its way back, begins."""

    node: str
    uid: str
    direction: Direction
    who: str
    cordoned: bool


def begin(asked: Beginning, now: datetime) -> NodeHandover:
    """A new take-over, or way back. Raises HandoverOpen where one of the node is open.

    A way back restores the labels that the last take-over of the very node changed.
    """
    back = asked.direction is Direction.BACK
    mine = NodeHandover.objects.filter(node=asked.node, node_uid=asked.uid)
    last = mine.filter(outcome=Outcome.DONE).first() if back else None
    try:
        with writing():
            row = NodeHandover.objects.create(
                node=asked.node,
                node_uid=asked.uid,
                step=BACK[0] if back else FORWARD[0],
                started_at=now,
                started_by=asked.who[:NAME_MAX],
                entered_at=now,
                was_cordoned=asked.cordoned,
                saved_labels={} if last is None else dict(last.saved_labels),
            )
            tell(row, EventKind.STARTED, now, asked.who)
    except IntegrityError as error:
        found = NodeHandover.objects.filter(node=asked.node, outcome=Outcome.OPEN).first()
        if found is None:
            raise
        raise HandoverOpen(found) from error
    return row


def approve(asked: Asked, now: datetime) -> NodeHandover:
    """Let a step be done once nothing forbids it. Raises DoesNotExist, HandoverOver, OtherStep."""
    approval = {"approved_by": asked.who[:NAME_MAX], "approved_at": now}
    return _at_step(asked, EventKind.APPROVED, now, **approval)


def withdraw(asked: Asked, now: datetime) -> NodeHandover:
    """Take an approval back; what was done meanwhile stays. Raises as :func:`approve`."""
    return _at_step(asked, EventKind.WITHDRAWN, now, **_UNAPPROVED)


def turn_back(pk: int, who: str, now: datetime) -> NodeHandover:
    """Lead the node back to who had it. Raises DoesNotExist, HandoverOver, OtherStep."""
    with writing():
        row = _open_row(pk)
        if row.direction is Direction.BACK:
            raise OtherStep(f"it is on its way back already, at step {row.step}")
        step = row.step
        write(row, looked_at=None, step=BACK[0], entered_at=now, regressed_from="", **_UNAPPROVED)
        tell(row, EventKind.TURNED_BACK, now, who, f"from {step}")
    return row


def close(pk: int, who: str, now: datetime) -> NodeHandover:
    """End it where it is; the cluster stays as it is.

    Raises DoesNotExist, HandoverOver, and OtherStep while a test has Pods in the cluster.
    """
    with writing():
        row = _open_row(pk)
        if row.tests.filter(state__in=UNDER_WAY).exists():
            raise OtherStep("a lifecycle test is under way; withdraw its approval first")
        write(row, outcome=Outcome.CLOSED, ended_at=now, **_UNAPPROVED)
        tell(row, EventKind.ENDED, now, who, Outcome.CLOSED)
    return row


def move(row: NodeHandover, step: Step, lost: tuple[Obstacle, ...], now: datetime) -> None:
    """Enter a step; with ``lost``, fall back to it. An approval is for one step only."""
    left = Step(row.step)
    furthest = row.regressed_from or left.value
    order = [item.value for item in order_of(step)]
    fell = furthest if lost or order.index(step.value) < order.index(furthest) else ""
    with writing():
        write(row, step=step, entered_at=now, regressed_from=fell, **_UNAPPROVED)
        if step is Step.TEST and not lost:
            ProfileTest.objects.filter(handover=row).delete()
        text = "; ".join(f"{item.code} {item.subject}: {item.evidence}" for item in lost)
        tell(row, EventKind.LOST if lost else EventKind.REACHED, now, text=text or left.value)


def end(row: NodeHandover, now: datetime) -> None:
    """The last step is reached."""
    back = row.direction is Direction.BACK
    outcome = Outcome.ROLLED_BACK if back else Outcome.DONE
    with writing():
        write(
            row, outcome=outcome, ended_at=now, obstacles=[], would_do=[], looked_at=now,
            **_UNAPPROVED,
        )  # fmt: skip
        tell(row, EventKind.ENDED, now, text=outcome)


def show(row: NodeHandover, obstacles: Iterable[Obstacle], change: Change, now: datetime) -> None:
    """What is in the way now, and what approving would do. No event: it changes all the time."""
    write(
        row,
        obstacles=encode_obstacles(obstacles),
        would_do=list(change.lines()),
        looked_at=now,
    )


def remember(row: NodeHandover, labels: Mapping[str, str | None]) -> None:
    """Keep labels as they were before we change them, the first time only.

    What MIG Manager paused is kept as running: nobody else would start it again.
    """
    before = {key: "true" if value == PAUSED else value for key, value in labels.items()}
    saved = {**before, **row.saved_labels}
    if saved != row.saved_labels:
        write(row, saved_labels=saved)


def disapprove(row: NodeHandover) -> None:
    """What was approved is over; doing it again takes another approval."""
    write(row, **_UNAPPROVED)


def standing_of(row: NodeHandover, now: datetime) -> Standing:
    """The take-over as plain data; one query for its tests."""
    return Standing(
        node=row.node,
        uid=row.node_uid,
        step=Step(row.step),
        approved=row.approved_at is not None,
        was_cordoned=row.was_cordoned,
        saved=dict(row.saved_labels),
        tests=tuple(trial_of(item, now) for item in row.tests.all()),
    )


def trial_of(row: ProfileTest, now: datetime) -> Trial:
    """A stored test as plain data."""
    return Trial(
        model=row.model,
        profile=row.profile,
        gpu=row.gpu,
        state=TrialState(row.state),
        since_s=max(0.0, (now - row.entered_at).total_seconds()),
        place=None if row.place is None else Place(**row.place),
        agent_uid=row.agent_uid,
        error=row.error,
    )


def save_test(row: ProfileTest, test: Trial, now: datetime) -> None:
    """Store where a test stands; its number of seconds in the state that it leaves is kept."""
    if row.state != test.state:
        row.took_s = {**row.took_s, row.state: round((now - row.entered_at).total_seconds(), 2)}
        row.entered_at = now
    row.state, row.error = test.state, test.error[:TEXT_MAX]
    row.agent_uid = test.agent_uid
    row.place = None if test.place is None else asdict(test.place)
    with writing():
        row.save()
        if test.is_over:
            text = f"{test.profile} of {test.model}: {test.state}. {test.error}".strip()
            tell(row.handover, EventKind.TESTED, now, text=text)


def plan_tests(row: NodeHandover, tests: Iterable[Trial], now: datetime) -> None:
    """Rows for tests that have none, and another attempt for those that failed."""
    known = {(item.model, item.profile): item for item in row.tests.all()}
    with writing():
        for test in tests:
            found = known.get((test.model, test.profile))
            if found is None:
                ProfileTest.objects.create(
                    handover=row, model=test.model, profile=test.profile, gpu=test.gpu,
                    entered_at=now,
                )  # fmt: skip
            elif found.state == TrialState.FAILED:
                found.state, found.entered_at, found.gpu = TrialState.WAITING, now, test.gpu
                found.attempt += 1
                found.place, found.agent_uid, found.error, found.took_s = None, "", "", {}
                found.save()


def tell(
    row: NodeHandover, kind: EventKind, now: datetime, actor: str = "", text: str = ""
) -> None:
    """Write down what happened."""
    HandoverEvent.objects.create(
        handover=row, at=now, kind=kind, step=row.step, actor=actor[:NAME_MAX], text=text
    )


def write(row: NodeHandover, **facts: Any) -> None:
    """Write columns of the row as it was read. Raises Overtaken where somebody else did since."""
    held = NodeHandover.objects.filter(pk=row.pk, revision=row.revision)
    if not held.update(revision=F("revision") + 1, **facts):
        raise Overtaken(f"take-over {row.pk}")
    row.revision += 1
    for name, value in facts.items():
        setattr(row, name, value)


_UNAPPROVED: dict[str, Any] = {"approved_by": "", "approved_at": None}


def _open_row(pk: int) -> NodeHandover:
    row = NodeHandover.objects.get(pk=pk)
    if not row.is_open:
        raise HandoverOver(f"it ended {row.ended_at:%Y-%m-%d %H:%M} UTC: {row.outcome}")
    return row


def _at_step(asked: Asked, kind: EventKind, now: datetime, **approval: Any) -> NodeHandover:
    with writing():
        row = _open_row(asked.pk)
        if row.step != asked.step:
            raise OtherStep(f"it is at step {row.step} by now, not {asked.step}")
        # Looked at next, whatever the last look said.
        write(row, **approval, looked_at=None)
        tell(row, kind, now, asked.who)
    return row
