"""The cluster's occupancy in memory: fed by list-and-watch, asked by ``/filter`` and ``/bind``.

Thread-safe, without I/O. Observations are level-triggered and keyed by UID, so they may repeat,
skip and arrive in any order between Pods and nodes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hami_web.cluster.views import NodeView, PodView
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.quota import NamespaceQuota
from hami_web.core.request import PodRequest
from hami_web.core.reservation import Reservation
from hami_web.scheduling.changes import Subscribers
from hami_web.scheduling.collection import undisturbed
from hami_web.scheduling.holding import hold_choice, hold_of_bound, usage_of
from hami_web.scheduling.holds import Hold, HoldBook
from hami_web.scheduling.observing import PodIntake
from hami_web.scheduling.occupancy import Occupants
from hami_web.scheduling.pods import PodRecord, ends_hold, identity_of, read_pod
from hami_web.scheduling.ranking import Rankings
from hami_web.scheduling.records import Claim, ClusterSnapshot, Phase
from hami_web.scheduling.refusal import Refused

__all__ = ["ClusterState", "Held", "Hold", "Refused"]


@dataclass(frozen=True, slots=True)
class Held:
    """The node that takes the Pod, and what is held for it there."""

    node: str
    hold: Hold


class ClusterState:
    """Who takes which memory slices, and where the next Pod goes."""

    def __init__(
        self, policy: SchedulingPolicy, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.policy = policy
        self._clock = clock
        self._lock = threading.RLock()
        self._occupants = Occupants()
        self._holds = HoldBook(clock, policy.hold_seconds)
        self._intake = PodIntake(self._occupants, self._holds)
        self._rankings = Rankings(self._occupants.tables)
        self._subscribers = Subscribers()

    def change_policy(self, policy: SchedulingPolicy) -> None:
        """Decide by another policy from now on; what is held stays held, for the new time."""
        with self._lock:
            self.policy = policy
            self._holds.seconds = policy.hold_seconds

    # observations

    def set_node(self, node: NodeView) -> None:
        """A node as it is now: capability, blocked intervals, cordon, readiness, allocatable."""
        with self._lock:
            self._occupants.set_node(node)
        self._announce()

    def remove_node(self, name: str) -> None:
        """A node is gone. The claims of its Pods come back with it, should it return."""
        with self._lock:
            self._occupants.remove_node(name)
        self._announce()

    def replace_nodes(self, nodes: Iterable[NodeView]) -> None:
        """All nodes, after a complete list; what it says counts once all of it is read."""
        with undisturbed():
            self._occupants.replace_nodes(nodes, self._lock)
        self._announce()

    def set_agent(self, node: str, alive: bool | None) -> None:  # noqa: FBT001
        """Whether a node's agent serves; None without a Lease: then the node's own facts decide."""
        with self._lock:
            self._occupants.set_agent(node, alive)
        self._announce()

    def set_pod(self, pod: PodView) -> None:
        """A Pod as it is now. Bound, it occupies until it is terminal or gone."""
        with self._lock:
            self._intake.observe(pod)
        self._announce()

    def remove_pod(self, uid: str) -> None:
        """A Pod is gone, whatever its last object looked like."""
        with self._lock:
            self._holds.drop(uid)
            self._occupants.remove_pod(uid)
        self._announce()

    def replace_pods(self, pods: Iterable[PodView], *, listed_at: float | None = None) -> None:
        """All Pods, after a complete list that was begun at ``listed_at`` of the state's clock.

        A hold stays while its Pod may be younger than the list. One whose Pod was filtered before
        the list began, and bound if it was, and which the list does not show, has lost its Pod.
        """
        moment = self._clock() - self.policy.hold_seconds if listed_at is None else listed_at
        with undisturbed():
            records: dict[str, PodRecord] = {}
            others: dict[str, bool] = {}
            for pod in pods:  # let go one by one: together they are larger than all that is kept
                record = read_pod(pod)
                if record is None:
                    others[pod.uid] = ends_hold(pod)
                else:
                    records[pod.uid] = record
            with self._lock:
                self._intake.replace(records, others, moment)
        self._announce()

    def set_quota(self, quota: NamespaceQuota) -> None:
        """A namespace's quota for GPU memory and cores as it is now."""
        with self._lock:
            self._occupants.set_quota(quota)

    def remove_quota(self, namespace: str, name: str) -> None:
        """A quota is gone."""
        with self._lock:
            self._occupants.remove_quota(namespace, name)

    def replace_quotas(self, quotas: Iterable[NamespaceQuota]) -> None:
        """All quotas, after a complete list."""
        with self._lock:
            self._occupants.replace_quotas(quotas)

    # decisions

    def filter(
        self, pod: PodView, request: PodRequest, node_names: Sequence[str]
    ) -> Held | Refused:
        """Choose a node and every placement for a Pod, and count them at once, or take nothing.

        A Pod that holds gets the same answer again while that is among the names; one that is
        bound, or is being bound, is never moved.
        """
        with self._lock:
            known = self._repeat(pod, request, node_names)
            answer = known or self._decide(pod, request, node_names)
        self._announce()
        return answer

    def hold_of(self, pod_uid: str) -> Hold | None:
        """What is held for a Pod."""
        with self._lock:
            return self._holds.get(pod_uid)

    def mark_binding(self, pod_uid: str) -> Hold | None:
        """Keep a hold from expiring while ``/bind`` works; ``confirm`` or ``release`` ends it."""
        with self._lock:
            return self._holds.mark_binding(pod_uid)

    def confirm(self, pod_uid: str) -> None:
        """The Binding is written: count the hold until the watch shows the bound Pod."""
        with self._lock:
            self._holds.confirm(pod_uid)

    def unseen_bindings(self, seconds: float) -> list[Hold]:
        """Holds whose Binding was written so long ago and that no watch has shown yet."""
        with self._lock:
            return self._holds.unseen(seconds)

    def release(self, pod_uid: str) -> None:
        """Give a hold up. A Pod that the watch has shown bound keeps its claims."""
        with self._lock:
            if self._holds.drop(pod_uid) is not None:
                self._occupants.remove_pod(pod_uid)
        self._announce()

    def expire_holds(self) -> list[Hold]:
        """Give up the holds whose time is over; returns them."""
        with self._lock:
            gone = [hold for uid in self._holds.expired() if (hold := self._holds.drop(uid))]
            for hold in gone:
                self._occupants.remove_pod(hold.pod_uid)
        self._announce()
        return gone

    def release_holds(self) -> None:
        """Give up every hold: another leader may have decided meanwhile."""
        with self._lock:
            for uid in list(self._holds.hold_times()):
                self._holds.drop(uid)
                self._occupants.remove_pod(uid)
        self._announce()

    # views

    def written(self, pod_uid: str, node: str) -> tuple[Reservation, ...] | None:
        """What is known to be reserved for a Pod on its node; None for nothing."""
        with self._lock:
            return self._intake.written(pod_uid, node)

    def is_bound_here(self, pod_uid: str, node: str) -> bool:
        """Whether this process sent, or is sending, the Pod's Binding to the node."""
        with self._lock:
            return self._intake.is_bound_here(pod_uid, node)

    def has_agent(self, node: str) -> bool:
        """Whether a node's agent has a Lease."""
        with self._lock:
            return self._occupants.has_agent(node)

    def pods_on(self, node: str) -> list[PodRecord]:
        """What the Pods on a node occupy."""
        with self._lock:
            return self._occupants.pods_on(node)

    @property
    def version(self) -> int:
        """Grows with every change."""
        return self._occupants.version

    def snapshot(self) -> ClusterSnapshot:
        """The cluster at this moment. Costs a copy of one mapping, none when nothing changed."""
        with self._lock:
            return self._occupants.snapshot()

    def node_names(self) -> tuple[str, ...]:
        """All nodes that are known, in no order."""
        with self._lock:
            return tuple(self._occupants.nodes)

    def subscribe(self, callback: Callable[[int], None]) -> Callable[[], None]:
        """Call back with the version after changes, outside the lock; returns the way to stop.

        Callbacks run on the thread that changed the state and must only pass the news on.
        """
        return self._subscribers.add(callback)

    def _announce(self) -> None:
        self._subscribers.tell(self._occupants.version)

    def _repeat(
        self, pod: PodView, request: PodRequest, names: Sequence[str]
    ) -> Held | Refused | None:
        uid = pod.uid
        hold = self._holds.get(uid)
        if hold is not None:
            binding = self._holds.is_binding(uid)
            if binding or (self._holds.same_request(uid, request) and self._stands(hold, request)):
                if hold.node in names:
                    self._holds.renew(uid)
                    return Held(hold.node, hold)
                if binding:
                    return self._refuse(request, names)
            return None
        bound = self._occupants.pod(uid)
        if bound is None and not pod.node_name:
            return None
        if bound is not None and bound.node in names and not bound.doubt:
            record = self._occupants.nodes.get(bound.node)
            containers = request.container_count
            return Held(bound.node, hold_of_bound(bound, record, containers, now=self._clock()))
        return self._refuse(request, names)

    def _decide(self, pod: PodView, request: PodRequest, names: Sequence[str]) -> Held | Refused:
        if self._holds.drop(pod.uid) is not None:
            self._occupants.remove_pod(pod.uid)
        index = self._rankings.index(request, self.policy)
        index.refresh(self._occupants.nodes, self._occupants.log)
        name = index.best(names)
        if name is None:
            return self._refuse(request, names)
        choice = index.choice(name)
        quota = self._occupants.exceeded(pod.metadata.namespace, lambda: usage_of(choice))
        if quota is not None:
            return self._refuse(request, names, quota)
        identity = identity_of(pod)
        hold = hold_choice(identity, name, choice, now=self._clock())
        claims = tuple([Claim.of(identity, Phase.HELD, item) for item in choice.reservations])
        self._holds.put(hold, request)
        self._occupants.set_pod(PodRecord(identity, name, claims))
        return Held(name, hold)

    def _refuse(
        self, request: PodRequest, names: Sequence[str], quota: NamespaceQuota | None = None
    ) -> Refused:
        index = self._rankings.index(request, self.policy)
        nodes = self._occupants.snapshot().nodes
        return Refused(index.selection, names, nodes, index.refusals, quota)

    def _stands(self, hold: Hold, request: PodRequest) -> bool:
        """True while the node and every GPU of a hold would still be given."""
        record = self._occupants.nodes.get(hold.node)
        if record is None or record.closed is not None:
            return False
        selection = self._rankings.index(request, self.policy).selection
        for item in hold.reservations:
            gpu = record.gpu(item.gpu_uuid)
            if gpu is None or gpu.refusal is not None or selection.refusal(gpu.capability):
                return False
        return True
