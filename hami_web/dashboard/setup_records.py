"""What the setup page checks and finds, and what it was found from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.conf import settings

from hami_web.dashboard.setup_words import COMMANDS, MENDS, TITLES
from hami_web.history.vitals import Vital


class CheckState(StrEnum):
    """The value is the class name in the page."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Check:
    """One check with what was found; what helps stands on every one that is not good."""

    code: str
    state: CheckState
    said: str

    @property
    def title(self) -> str:
        return str(TITLES[self.code])

    @property
    def mend(self) -> str:
        return str(MENDS[self.code])

    @property
    def command(self) -> str:
        """What to copy."""
        namespace = settings.NAMESPACE
        account = f"system:serviceaccount:{namespace}"
        return COMMANDS[self.code].format(namespace=namespace, account=account)


@dataclass(frozen=True, slots=True)
class ReadinessLook:
    """A readiness check that ended ``at`` a moment, with the codes of what it found."""

    at: datetime
    codes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the mirror says, at ``now`` of this process and ``database_now`` of the database's."""

    now: datetime
    database_now: datetime | None
    vitals: Sequence[Vital]
    extender_at: datetime | None
    decided_at: datetime | None
    alerts: frozenset[str]
    unapplied: tuple[str, ...]
    readiness: ReadinessLook | None = None

    @property
    def worker_works(self) -> bool:
        """Every part of it was seen lately: what it wrote is of now."""
        return bool(self.vitals) and all(item.at and not item.silent for item in self.vitals)


def good(code: str, said: str) -> Check:
    """A check that holds."""
    return Check(code, CheckState.GOOD, said)


def bad(code: str, said: str) -> Check:
    """A check that does not hold."""
    return Check(code, CheckState.BAD, said)


def unknown(code: str, said: str) -> Check:
    """A check that nobody here can make."""
    return Check(code, CheckState.UNKNOWN, said)
