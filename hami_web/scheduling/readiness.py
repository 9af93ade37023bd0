"""When this process may decide: it leads, and knows the cluster as its own term found it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hami_web.cluster.reflector import Reflector
from hami_web.scheduling.leadership import Leadership

SILENCE_MOST_S: Final = 360.0
"""Longer than any watch lasts: an API server unheard for this long may have bound and freed
anything, so nothing is decided."""


class Readiness:
    """Why nothing can be decided now, if so.

    A list that began before the term does not count for it: another replica may have bound Pods
    until then.
    """

    def __init__(
        self,
        leadership: Leadership,
        reflectors: Sequence[Reflector[Any]],
        *,
        silence_most_s: float = SILENCE_MOST_S,
    ) -> None:
        self._leadership = leadership
        self._reflectors = reflectors
        self._silence_most_s = silence_most_s

    def not_ready_because(self) -> str | None:
        """The reason in words, or None."""
        term = self._leadership.term()
        if term is None:
            leader = self._leadership.leader() or "nobody yet"
            return f"this replica stands by; {leader} leads"
        for reflector in self._reflectors:
            if not reflector.listed_since(term.began_at):
                return _incomplete(reflector, f" in term {term.number}")
        return self.stale_because()

    def stale_because(self) -> str | None:
        """The reason why the cluster is not known, leading or not."""
        for reflector in self._reflectors:
            if not reflector.synced.is_set():
                return _incomplete(reflector)
            age = reflector.age_s()
            if age is not None and age > self._silence_most_s:
                heard = f"the API server was not heard for {age:.0f} s about {reflector.name}"
                return f"{reflector.problem}; {heard}" if reflector.problem else heard
        return None


def _incomplete(reflector: Reflector[Any], term: str = "") -> str:
    """With the cause in front, where there is one."""
    text = f"the first list of {reflector.name}{term} is not complete yet"
    return f"{reflector.problem}; {text}" if reflector.problem else text
