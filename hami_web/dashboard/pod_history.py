"""What the records hold of one Pod: its reservations with their steps, and what was said of it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import DatabaseError
from django.db.models import Q

from hami_web.dashboard.wording import outcome_word, phase_word, reason_words, step_word
from hami_web.history.decisions import Said, said_of
from hami_web.reservations.models import NEVER_BOUND, MigReservation, Phase

logger = logging.getLogger(__name__)

ATTEMPTS_MAX: Final = 50
RESERVATIONS_MAX: Final = 100


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
class Attempt:
    """One answer of the extender or of kube-scheduler, and how often it was given.

    ``later`` says that it was given again after the moment that is shown.
    """

    said: Said
    outcome: str
    words: str
    later: bool = False


def attempts_of(
    namespace: str, name: str, until: datetime | None = None
) -> tuple[Attempt, ...] | None:
    """What was said of the Pod, newest first, two queries; None where it cannot be read.

    With ``until`` only what had been said by then.
    """
    try:
        said = said_of(namespace, name, limit=ATTEMPTS_MAX, until=until)
    except DatabaseError as error:
        logger.warning("Pod %s/%s: the mirror cannot be read: %s", namespace, name, error)
        return None
    return tuple(
        Attempt(
            item,
            outcome_word(item.outcome),
            reason_words(item.code) if item.code else "",
            later=until is not None and item.last_at > until,
        )
        for item in said
    )


def lives_of(namespace: str, name: str, until: datetime | None = None) -> tuple[Life, ...] | None:
    """The Pod's reservations, newest first, one query; None where they cannot be read.

    With ``until`` those that there were by then, with the steps that were done.
    """
    rows = MigReservation.objects.filter(namespace=namespace, pod=name)
    if until is not None:
        rows = rows.filter(Q(held_at__lte=until) | Q(reserved_at__lte=until))
    try:
        return tuple(_life(row, until) for row in rows[:RESERVATIONS_MAX])
    except DatabaseError as error:
        logger.warning("Pod %s/%s: the mirror cannot be read: %s", namespace, name, error)
        return None


def phase_at(row: MigReservation, moment: datetime) -> str:
    """How far a reservation was, as far as its times tell."""
    done = (
        (row.released_at, row.phase),
        (row.terminating_at, Phase.TERMINATING.value),
        (row.realized_at, Phase.REALIZED.value),
        (None if row.phase in NEVER_BOUND else row.reserved_at, Phase.RESERVED.value),
    )
    return next((phase for at, phase in done if at is not None and at <= moment), Phase.HELD.value)


def _life(row: MigReservation, until: datetime | None) -> Life:
    phase = row.phase if until is None else phase_at(row, until)
    steps = tuple(
        step for step in _steps(row) if step.at is not None and (until is None or step.at <= until)
    )
    return Life(row, phase_word(phase), steps)


def _steps(row: MigReservation) -> tuple[Step, ...]:
    took = row.steps_s
    return (
        Step(step_word("held"), row.held_at, None),
        Step(step_word("reserved"), row.reserved_at, took["hold_s"]),
        Step(step_word("realized"), row.realized_at, took["realize_s"]),
        Step(step_word("started"), row.started_at, took["start_s"]),
        Step(step_word("terminating"), row.terminating_at, None),
        Step(step_word("released"), row.released_at, took["terminate_s"]),
    )
