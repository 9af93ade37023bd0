"""The scheduling core put together: client, watches, state, binds, and the loops around them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hami_web.cluster.client import KubernetesClient, OfficialConnection
from hami_web.cluster.pacing import Pace
from hami_web.cluster.reflector import Reflector, Timing
from hami_web.cluster.resources import leases, nodes, pods, resource_quotas
from hami_web.cluster.transport import Transport
from hami_web.cluster.views import PodView
from hami_web.core.liveness import AGENT_LEASE_LABEL, AGENT_LEASE_NAMESPACE, AGENT_LEASE_ROLE
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.signature import KeyFile
from hami_web.scheduling.agents import AgentLeases
from hami_web.scheduling.bind import Binder, BindOptions, BindOrder
from hami_web.scheduling.bind_queue import BindQueue
from hami_web.scheduling.custody import Custody
from hami_web.scheduling.decider import Core, Decider
from hami_web.scheduling.decision_log import DecisionLog, DecisionPage
from hami_web.scheduling.decisions import Fits, NotReady, RefusedEverywhere
from hami_web.scheduling.events import EventRecorder
from hami_web.scheduling.fence import FencedCluster
from hami_web.scheduling.leadership import Election, Elector, Leadership, SoleProcess, Term
from hami_web.scheduling.nodelock import LockChanges, NodeLocks
from hami_web.scheduling.readiness import Readiness
from hami_web.scheduling.realizations import Realizations
from hami_web.scheduling.role_label import RoleLabel
from hami_web.scheduling.sinks import NodeSink, PodSink, QuotaSink
from hami_web.scheduling.state import ClusterState
from hami_web.scheduling.telling import ProblemTeller, StateProblems
from hami_web.scheduling.waiting import WaitingPods, Waker

logger = logging.getLogger(__name__)

USER_AGENT = "hami-web-extender"
TICK_S = 1.0
SETTLE_EVERY_S = 2.0
LAST_WRITES_S = 1.0
"""How long a stop waits for writes in progress before it gives leadership up."""
LOOK_FIRST_S = 1.0
"""How long a start waits for the first look at the Lease."""


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """What a process chooses. ``kubeconfig`` None means the Pod's ServiceAccount; seconds.

    ``election`` None means that no other replica exists. ``instance`` names this process in
    events. ``calls_per_second`` and ``call_burst``
    bound the calls to the API server.
    """

    kubeconfig: Path | None = None
    policy: SchedulingPolicy = field(default_factory=SchedulingPolicy)
    scheduler_name: str = "hami-scheduler"
    namespace: str = AGENT_LEASE_NAMESPACE
    election: Election | None = None
    instance: str = "extender"
    keys: KeyFile | None = None
    bind_wait_s: float = 20.0
    most_waiting_binds: int = 96
    calls_per_second: float = 200.0
    call_burst: int = 400
    timing: Timing = field(default_factory=Timing)


class Runtime:
    """Everything that ``/filter`` and ``/bind`` need, from ``start`` to ``stop``."""

    def __init__(
        self, options: RuntimeOptions, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._connection = OfficialConnection(options.kubeconfig)
        self.pace = Pace(options.calls_per_second, options.call_burst)
        transport = Transport(self._connection, user_agent=USER_AGENT, pace=self.pace)
        self.client = client = KubernetesClient(transport)
        self.leadership, self._label = self._lead(client, options)
        cluster = FencedCluster(client, self.leadership)
        self._lock_changes = changes = LockChanges()
        self.state = ClusterState(options.policy)
        self.agents = AgentLeases(self.state)
        self.quotas = QuotaSink(self.state, notice=self._notice)
        self.waiting = WaitingPods()
        custody = Custody(self.state, options.keys)
        self.queue = BindQueue(most_waiting=options.most_waiting_binds)
        self._locks = NodeLocks(cluster, changes)
        self.binder = Binder(
            cluster,
            self.state,
            self._locks,
            self.queue,
            options=BindOptions(options.bind_wait_s, options.keys),
        )
        self.events = EventRecorder(client, options.instance)
        self.log = DecisionLog()
        self.decider = Decider(
            Core(
                self.state,
                self.waiting,
                self.binder,
                self.events,
                self.log,
                self.not_ready_because,
            ),
            notice=self._notice,
        )
        self.waker = Waker(
            self.waiting, self.decider.hold_if_free, cluster, give_up=self.state.release
        )
        self.problems = ProblemTeller((StateProblems(self.state), custody), self.events)
        timing = options.timing
        label = f"{AGENT_LEASE_LABEL}={AGENT_LEASE_ROLE}"
        self.realizations = Realizations()
        self._pod_sink = PodSink(
            self.state,
            self.waiting,
            custody,
            options.scheduler_name,
            notice=self._notice,
            realizations=self.realizations,
        )
        node_sink = NodeSink(self.state, changes, custody)
        self.reflectors: tuple[Reflector[Any], ...] = (
            Reflector(
                "leases", leases(transport, options.namespace, label), self.agents, timing=timing
            ),
            Reflector("quotas", resource_quotas(transport), self.quotas, timing=timing),
            Reflector("nodes", nodes(transport), node_sink, timing=timing),
            Reflector("pods", pods(transport), self._pod_sink, timing=timing),
        )
        self.readiness = Readiness(self.leadership, self.reflectors)
        self._retiring = threading.Event()
        self._stopped = threading.Event()
        self._loops = (
            threading.Thread(target=self._tick, name="ticker", daemon=True),
            threading.Thread(target=self._settle, name="settler", daemon=True),
        )

    def _lead(
        self, client: KubernetesClient, options: RuntimeOptions
    ) -> tuple[Leadership, RoleLabel | None]:
        election = options.election
        if election is None:
            return SoleProcess(), None
        elector = Elector(client, election, on_change=self._on_term, is_fit=self._works)
        label = RoleLabel(client, election.namespace, election.pod) if election.pod else None
        return elector, label

    def start(self) -> None:
        """Begin to watch; answers come once this process leads and its lists are complete."""
        self.state.subscribe(lambda _version: self.waker.notice())
        for loop in self._loops:
            loop.start()
        self.waker.start()
        self.events.start()
        if self._label is not None:
            self._label.start()
        self.leadership.start()
        if isinstance(self.leadership, Elector):
            # A list that begins before the term must be repeated for it.
            self.leadership.looked.wait(LOOK_FIRST_S)
        for reflector in self.reflectors:
            reflector.start()

    def retire(self) -> None:
        """Decide nothing new, let the writes in progress end, and give leadership up."""
        if self._retiring.is_set():
            return
        self._retiring.set()
        self.queue.close()
        self._lock_changes.close()
        deadline = self._clock() + LAST_WRITES_S
        while not self.queue.is_empty and self._clock() < deadline:
            time.sleep(0.01)
        self.leadership.stop()

    def stop(self) -> None:
        """Give leadership up, end every thread and close the connections."""
        self.retire()
        self._stopped.set()
        self.leadership.stop()
        for reflector in self.reflectors:
            reflector.stop()
        self.waker.stop()
        self.events.stop()
        if self._label is not None:
            self._label.stop()
        for loop in self._loops:
            if loop.is_alive():
                loop.join(5)
        self._connection.close()

    def not_ready_because(self) -> str | None:
        """Why nothing can be decided now, or None."""
        if self._retiring.is_set():
            return "this process is stopping"
        return self.readiness.not_ready_because()

    def stale_because(self) -> str | None:
        """Why even a standby would not know the cluster, or None."""
        return self.readiness.stale_because()

    def filter(self, pod: PodView, names: tuple[str, ...]) -> Fits | RefusedEverywhere:
        """See :meth:`Decider.filter`."""
        return self.decider.filter(pod, names)

    def bind(self, order: BindOrder) -> None:
        """See :meth:`Decider.bind`."""
        self.decider.bind(order)

    def decisions_since(self, cursor: str, limit: int) -> DecisionPage:
        """See :meth:`DecisionLog.since`; raises NotReady on a replica that decides nothing."""
        if self.leadership.term() is None:
            raise NotReady("this replica stands by and decides nothing")
        return self.log.since(cursor, limit)

    def _on_term(self, term: Term | None) -> None:
        """A term began or ended: what was held before it was for another's cluster."""
        self.state.release_holds()
        if term is not None:
            for reflector in self.reflectors:
                reflector.relist()
            self.waker.notice()
        if self._label is not None:
            former = self.leadership.former if isinstance(self.leadership, Elector) else ""
            self._label.show(leads=term is not None, former=former)

    def _notice(self) -> None:
        self.waker.notice()

    def _works(self) -> bool:
        """Whether everything that a leader needs is alive."""
        return self.waker.is_alive and all(loop.is_alive() for loop in self._loops)

    def _tick(self) -> None:
        was_ready = False
        while not self._stopped.wait(TICK_S):
            try:
                self.state.expire_holds()
                self.agents.tick()
                self._pod_sink.look_again()
                self.problems.look()
                is_ready = self.not_ready_because() is None
                if is_ready and not was_ready:
                    # Who waited since before this process or this term is looked at now.
                    self.waker.notice()
                if is_ready:
                    self.problems.tell()
                was_ready = is_ready
            except Exception:
                logger.exception("the tick of holds and agents")

    def _settle(self) -> None:
        while not self._stopped.wait(SETTLE_EVERY_S):
            try:
                if self.not_ready_because() is None:
                    self.binder.settle()
                    self._locks.sweep()
            except Exception:
                logger.exception("settling unclear binds and locks")
