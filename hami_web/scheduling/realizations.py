"""How long agents take from a Pod's Binding to its instances, as this process watches it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from hami_web.scheduling.measures import Durations
from hami_web.scheduling.records import Claim, Phase


class Realizations:
    """Bound Pods whose instances are not all known yet, with when each was first seen.

    Those that a list brings were bound at some unknown time before: they count for the age, from
    then on, and for no duration. Bounded by the Pods that wait for their instances.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.durations = Durations()
        self._clock = clock
        self._lock = threading.Lock()
        self._watched: dict[str, float] = {}
        self._listed: dict[str, float] = {}

    def observe(self, uid: str, claims: Iterable[Claim]) -> None:
        """What a Pod claims now, as a watch brought it; nothing when it is over."""
        phases = {claim.phase for claim in claims}
        with self._lock:
            if Phase.RESERVED in phases:
                if uid not in self._listed:
                    self._watched.setdefault(uid, self._clock())
                return
            self._listed.pop(uid, None)
            began = self._watched.pop(uid, None)
        if began is not None and Phase.REALIZED in phases:
            self.durations.observe(self._clock() - began)

    def replace(self, claims: Iterable[Claim]) -> None:
        """All claims of bound Pods, after a complete list."""
        waiting = {claim.pod.uid for claim in claims if claim.phase is Phase.RESERVED}
        now = self._clock()
        with self._lock:
            self._watched = {uid: at for uid, at in self._watched.items() if uid in waiting}
            self._listed = {
                uid: self._listed.get(uid, now) for uid in waiting if uid not in self._watched
            }

    def oldest_s(self) -> float:
        """For how long the oldest reservation has had no instance, in seconds; 0 for none."""
        with self._lock:
            began = min((*self._watched.values(), *self._listed.values()), default=None)
        return 0.0 if began is None else self._clock() - began
