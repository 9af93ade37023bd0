"""Which node agents serve, from the Leases that they renew.

Age is measured here from the moment a renewal was seen, so two machines' clocks are never
compared, with one exception: of a Lease seen for the first time only the time that its agent wrote
tells whether it is old. If that is too long ago the node waits for the next renewal.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from hami_web.cluster.views import LeaseView, ObjectMeta
from hami_web.core.liveness import AGENT_LEASE_SECONDS, agent_lease_name


class AgentStates(Protocol):
    """Who wants to know of a node's agent."""

    def set_agent(self, node: str, alive: bool | None) -> None: ...  # noqa: FBT001


@dataclass(slots=True)
class _Agent:
    node: str
    lease_uid: str
    renewed: str | None
    good_until: float


class AgentLeases:
    """Sink of the agents' Leases; ``tick`` closes the nodes whose Lease ran out."""

    def __init__(
        self,
        states: AgentStates,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._states = states
        self._clock = clock
        self._now = now
        self._lock = threading.Lock()
        self._agents: dict[str, _Agent] = {}

    def replace(self, items: Iterable[LeaseView], *, listed_at: float) -> None:  # noqa: ARG002
        """Take a complete list."""
        leases = list(items)
        present = {lease.metadata.name for lease in leases}
        with self._lock:
            gone = [name for name in self._agents if name not in present]
            for name in gone:
                self._forget(name)
            for lease in leases:
                self._take(lease)

    def put(self, item: LeaseView) -> None:
        """Take one Lease as it is now."""
        with self._lock:
            self._take(item)

    def remove(self, metadata: ObjectMeta) -> None:
        """A Lease is gone: the node's own facts decide from here."""
        with self._lock:
            self._forget(metadata.name)

    def tick(self) -> None:
        """Close the nodes of agents that were not heard for too long."""
        now = self._clock()
        with self._lock:
            for agent in self._agents.values():
                if agent.good_until <= now:
                    self._states.set_agent(agent.node, alive=False)

    def dead(self) -> list[str]:
        """Nodes whose agent does not serve, sorted."""
        now = self._clock()
        with self._lock:
            return sorted(a.node for a in self._agents.values() if a.good_until <= now)

    def _take(self, lease: LeaseView) -> None:
        name = lease.metadata.name
        known = self._agents.get(name)
        node = lease.holder or (known.node if known else _node_of(lease))
        if not node or agent_lease_name(node) != name:
            return  # some other Lease that carries our label: it speaks for no node
        renewed = lease.spec.renew_time
        if known is None or known.lease_uid != lease.metadata.uid:
            until = self._first_guess(lease)
        elif renewed == known.renewed:
            until = known.good_until
        else:
            until = self._clock() + _duration_s(lease)
        if not lease.holder:
            until = 0.0
        self._agents[name] = _Agent(node, lease.metadata.uid, renewed, until)
        self._states.set_agent(node, until > self._clock())

    def _first_guess(self, lease: LeaseView) -> float:
        duration_s = _duration_s(lease)
        age_s = self._age_s(lease.spec.renew_time)
        return self._clock() + duration_s if age_s <= duration_s else 0.0

    def _age_s(self, text: str | None) -> float:
        try:
            return (self._now() - datetime.fromisoformat(text or "")).total_seconds()
        except (ValueError, TypeError):
            return float("inf")

    def _forget(self, name: str) -> None:
        agent = self._agents.pop(name, None)
        if agent is not None:
            self._states.set_agent(agent.node, None)


def _duration_s(lease: LeaseView) -> float:
    return lease.duration_s or float(AGENT_LEASE_SECONDS)


def _node_of(lease: LeaseView) -> str:
    """The node of a released Lease that was never seen held, from its name where it tells."""
    name = lease.metadata.name
    node = name.removeprefix(agent_lease_name(""))
    return node if agent_lease_name(node) == name else ""
