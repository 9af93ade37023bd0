"""Faults that tests order: what goes wrong, for which requests, how many times."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["drop", "delay", "answer", "truncate", "lose-answer", "duplicate-events"]


@dataclass(frozen=True, slots=True)
class RequestMatch:
    """Which requests a fault meets. None matches everything.

    ``verb`` is the API's: get, list, watch, create, update, patch, delete, deletecollection;
    ``resource`` a plural; ``subresource`` is empty for the object itself.
    """

    verb: str | None = None
    resource: str | None = None
    subresource: str | None = None
    namespace: str | None = None
    name: str | None = None
    user: str | None = None

    def accepts(self, other: RequestMatch) -> bool:
        pairs = (
            (self.verb, other.verb),
            (self.resource, other.resource),
            (self.subresource, other.subresource),
            (self.namespace, other.namespace),
            (self.name, other.name),
            (self.user, other.user),
        )
        return all(wanted is None or wanted == found for wanted, found in pairs)


@dataclass(frozen=True, slots=True)
class Fault:
    """One ordered fault; ``times`` None means until it is cleared.

    ``drop`` closes the connection before anything is done, ``lose-answer`` after it was done,
    ``truncate`` in the middle of the answer's body. ``delay`` waits ``seconds`` first. ``answer``
    refuses with HTTP ``code``. ``duplicate-events`` makes a watch send each event twice.
    """

    kind: Kind
    match: RequestMatch
    times: int | None = 1
    code: int = 500
    seconds: float = 0.0
    retry_after: int | None = None


class Faults:
    """The faults now ordered; safe to change while the server runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []

    def order(
        self, kind: Kind, match: RequestMatch | None = None, *, times: int | None = 1
    ) -> None:
        """Order a fault that needs no number: drop, truncate, lose-answer, duplicate-events."""
        self._add(Fault(kind, match or RequestMatch(), times))

    def delay(
        self, seconds: float, match: RequestMatch | None = None, *, times: int | None = 1
    ) -> None:
        """Let matching requests wait before they are looked at."""
        self._add(Fault("delay", match or RequestMatch(), times, seconds=seconds))

    def answer(
        self,
        code: int,
        match: RequestMatch | None = None,
        *,
        times: int | None = 1,
        retry_after: int | None = None,
    ) -> None:
        """Refuse matching requests with this HTTP code, without doing them."""
        fault = Fault("answer", match or RequestMatch(), times, code=code, retry_after=retry_after)
        self._add(fault)

    def clear(self) -> None:
        """Forget all faults that are still ordered."""
        with self._lock:
            self._faults.clear()

    def take(self, request: RequestMatch) -> list[Fault]:
        """The faults that this request meets; each counts as used once."""
        with self._lock:
            met = [fault for fault in self._faults if fault.match.accepts(request)]
            for fault in met:
                if fault.times is None:
                    continue
                position = self._faults.index(fault)
                if fault.times <= 1:
                    del self._faults[position]
                else:
                    self._faults[position] = replace(fault, times=fault.times - 1)
            return met

    def _add(self, fault: Fault) -> None:
        with self._lock:
            self._faults.append(fault)
