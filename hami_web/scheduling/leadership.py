"""Which replica decides: a Lease with terms, renewed by one thread.

A term is one stretch of one holder, told from others by ``leaseTransitions``. It ends for its
holder by the holder's own clock, earlier than anyone else may take it: a process that was paused,
or that cannot reach the API server, finds its term over before it writes again.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol

from hami_web.cluster.errors import ClusterError, Conflict, NotFound, Superseded
from hami_web.cluster.ports import LeaseSpec, LeaseStore
from hami_web.cluster.views import LeaseView

logger = logging.getLogger(__name__)

LEASE_NAME: Final = "hami-extender"
_OWN_SHARE: Final = 0.8
"""Of the Lease's duration, what its holder counts on: clocks drift, and a write takes time."""


def boot_clock() -> float:
    """Seconds that also pass while the machine sleeps; monotonic."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Term:
    """One stretch of leadership: its number, and when it began on the monotonic clock."""

    number: int
    began_at: float


class Leadership(Protocol):
    """Who decides, as the use-cases see it."""

    def term(self) -> Term | None:
        """This process's term as long as it lasts, else None."""
        ...

    def leader(self) -> str:
        """Who decides as far as is known, empty for nobody."""
        ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


class SoleProcess:
    """Leadership where no other replica exists: one term, from start to stop."""

    def __init__(self) -> None:
        self._term: Term | None = None

    def term(self) -> Term | None:
        return self._term

    def leader(self) -> str:
        return "this process"

    def start(self) -> None:
        """Begin the only term."""
        self._term = Term(0, time.monotonic())

    def stop(self) -> None:
        """End it."""
        self._term = None


@dataclass(frozen=True, slots=True)
class Election:
    """Where the Lease is, who we are, and the times in seconds.

    ``pod`` is the name of our Pod. A Lease held by an earlier process of the same Pod is taken at
    once: the kubelet ends a container before it starts the next. Empty where no Pod is known.
    """

    namespace: str
    pod: str = ""
    name: str = LEASE_NAME
    lease_s: int = 10
    look_every_s: float = 0.5

    @property
    def renew_every_s(self) -> float:
        """Several tries fit in a Lease."""
        return self.lease_s / 5


class Elector:
    """Takes the Lease when it is free, renews it, and gives it up at stop.

    ``on_change`` is called on the elector's thread after a term began or ended. ``is_fit`` False
    ends the term and keeps from taking another: a leader whose work has died must not lead.
    """

    def __init__(
        self,
        store: LeaseStore,
        election: Election,
        *,
        on_change: Callable[[Term | None], None] = lambda _term: None,
        is_fit: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = boot_clock,
    ) -> None:
        self.former = ""
        """The Pod that led before us, empty where none is known."""
        self.identity = f"{election.pod or 'process'}_{secrets.token_hex(8)}"
        self.looked = threading.Event()
        self._store = store
        self._election = election
        self._on_change = on_change
        self._is_fit = is_fit
        self._clock = clock
        self._lock = threading.Lock()
        self._term: Term | None = None
        self._deadline = 0.0
        self._told: Term | None = None
        self._seen_version = ""
        self._seen_at = 0.0
        self._holder = ""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="elector", daemon=True)

    def term(self) -> Term | None:
        with self._lock:
            return self._term if self._clock() < self._deadline else None

    def leader(self) -> str:
        return self._holder

    def start(self) -> None:
        """Begin to look at the Lease."""
        self._thread.start()

    def stop(self) -> None:
        """End the term and give the Lease up, so that another replica takes it at once."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(5)
        held = self._end()
        if held:
            self._give_up()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._turn()
            except Conflict:
                logger.info("leadership: another replica wrote the Lease first")
            except ClusterError as error:
                logger.warning("leadership: %s", error)
            except Exception:
                logger.exception("leadership")
            self.looked.set()
            self._tell()
            self._stopped.wait(self._pause())

    def _pause(self) -> float:
        """Until the next look; a term that nears its end is looked at when it is over."""
        leading = self.term() is not None
        pause = self._election.renew_every_s if leading else self._election.look_every_s
        return min(pause, max(self._deadline - self._clock(), 0.05)) if leading else pause

    def _turn(self) -> None:
        if not self._is_fit():
            if self._end():
                logger.error("leadership: given up, since this process cannot work")
                self._give_up()
            return
        began = self._clock()
        election = self._election
        try:
            lease = self._store.get_lease(election.namespace, election.name)
        except NotFound:
            spec = self._spec(acquired_at="", transitions=0)
            created = self._store.create_lease(election.namespace, election.name, spec)
            self._hold(created, began)
            return
        if lease.holder == self.identity:
            spec = self._spec(lease.spec.acquire_time or "", lease.transitions)
            self._hold(self._store.patch_lease(lease, spec), began)
        elif self._is_free(lease):
            self.former = _pod_of(lease.holder or self._holder)
            spec = self._spec(acquired_at="", transitions=lease.transitions + 1)
            self._hold(self._store.patch_lease(lease, spec), began)
        else:
            self._end()
            self._holder = lease.holder

    def _is_free(self, lease: LeaseView) -> bool:
        if not lease.holder:
            return True
        if self._election.pod and _pod_of(lease.holder) == self._election.pod:
            return True
        now = self._clock()
        version = lease.metadata.resource_version
        if version != self._seen_version:
            self._seen_version, self._seen_at = version, now
        return now - self._seen_at > lease.duration_s

    def _hold(self, lease: LeaseView, sent_at: float) -> None:
        """Count on what was written from the moment before it was sent."""
        with self._lock:
            number = lease.transitions
            over = self._term is None or self._clock() >= self._deadline
            if over or self._term is None or self._term.number != number:
                self._term = Term(number, time.monotonic())
                logger.info("leadership: term %d begins", number)
            self._deadline = sent_at + self._election.lease_s * _OWN_SHARE
        self._holder = self.identity

    def _end(self) -> bool:
        """End our term; True if there was one."""
        with self._lock:
            had = self._term is not None
            if had:
                logger.info("leadership: term %d ends", self._term.number if self._term else -1)
            self._term = None
            self._deadline = 0.0
        return had

    def _give_up(self) -> None:
        """Empty the holder, if we are it still; best effort: it runs out otherwise."""
        try:
            lease = self._store.get_lease(self._election.namespace, self._election.name)
            if lease.holder == self.identity:
                moment = _now()
                spec = LeaseSpec("", 1, moment, moment, lease.transitions)
                self._store.patch_lease(lease, spec)
        except ClusterError as error:
            logger.warning("leadership: giving the Lease up: %s", error)
        self._tell()

    def _tell(self) -> None:
        term = self.term()
        if term != self._told:
            self._told = term
            self._on_change(term)

    def _spec(self, acquired_at: str, transitions: int) -> LeaseSpec:
        moment = _now()
        seconds = self._election.lease_s
        return LeaseSpec(self.identity, seconds, acquired_at or moment, moment, transitions)


def check_leads(leadership: Leadership, what: str) -> None:
    """Raise Superseded unless this process leads at this moment."""
    if leadership.term() is None:
        raise Superseded(f"{what}: not sent; this replica does not lead (any more)")


def _pod_of(identity: str) -> str:
    """The Pod's name in an identity; object names have no underscore."""
    pod = identity.rpartition("_")[0]
    return "" if pod == "process" else pod


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
