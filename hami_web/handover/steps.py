"""The steps of a node's take-over and of its way back, in their order.

The order is that of HAMi's own migration: drained before handed over, the scheduler before the
agent, and open for work only after the lifecycle test.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Direction(StrEnum):
    """Towards our ownership of a node's GPUs, or back to who had it before."""

    FORWARD = "forward"
    BACK = "back"


class Step(StrEnum):
    """What is to be reached next. Stable across releases."""

    ASSESS = "assess"
    CORDON = "cordon"
    DRAIN = "drain"
    HAND_OVER = "hand-over"
    SCHEDULER = "scheduler"
    PUBLISH = "publish"
    TEST = "lifecycle-test"
    UNCORDON = "uncordon"
    BACK_CORDON = "back-cordon"
    BACK_DRAIN = "back-drain"
    BACK_WITHDRAW = "back-withdraw"
    BACK_RESTORE = "back-restore"
    BACK_UNCORDON = "back-uncordon"


FORWARD: Final = (
    *(Step.ASSESS, Step.CORDON, Step.DRAIN, Step.HAND_OVER),
    *(Step.SCHEDULER, Step.PUBLISH, Step.TEST, Step.UNCORDON),
)
BACK: Final = (
    *(Step.BACK_CORDON, Step.BACK_DRAIN, Step.BACK_WITHDRAW),
    *(Step.BACK_RESTORE, Step.BACK_UNCORDON),
)
WATCHED_ONLY: Final = frozenset({Step.ASSESS, Step.SCHEDULER})
"""Steps in which nothing of the cluster is changed by us, so that nobody has to approve them."""


def order_of(step: Step) -> tuple[Step, ...]:
    """All steps of the step's direction."""
    return FORWARD if step in FORWARD else BACK


def direction_of(step: Step) -> Direction:
    """Where the step leads."""
    return Direction.FORWARD if step in FORWARD else Direction.BACK


_ENDS: Final = {
    Step.TEST: Step.PUBLISH,
    Step.UNCORDON: Step.CORDON,
    Step.BACK_UNCORDON: Step.BACK_CORDON,
}
"""What a step takes away itself: uncordoning ends the cordon, and while the lifecycle test
restarts the agent, what the node publishes comes and goes (the test says if it does not come)."""


def before(step: Step) -> tuple[Step, ...]:
    """The steps whose goals must go on to hold at it, in order."""
    steps = order_of(step)
    return tuple(s for s in steps[: steps.index(step)] if s is not _ENDS.get(step))


def after(step: Step) -> Step | None:
    """The next step; None after the last."""
    steps = order_of(step)
    position = steps.index(step) + 1
    return steps[position] if position < len(steps) else None
