"""Allocate: from the kubelet's anonymous request to instances of exactly one Pod, or a refusal.

Sure or refuse: lock holder, Pod, node, phase, bind phase, container and device count must all agree
with exactly one reservation. All devices of a container are realized, or none is.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from hami_web.core import annotations as keys
from hami_web.core.log_lines import about, new_request_id
from hami_web.core.reservation import RuntimeIdentity
from hami_web.core.tracing import span
from node_agent import nodelock
from node_agent.cluster import Cluster
from node_agent.delivery import Delivery, Grant
from node_agent.errors import (
    AgentError,
    ClusterConflict,
    ClusterError,
    DeadlineExceeded,
    NoPodToServe,
    ReservationMismatch,
)
from node_agent.instances import InstanceManager
from node_agent.locks import Deadline
from node_agent.nvml.ports import DriverError
from node_agent.ownership import Claim, InstanceRecord, InstanceSpec, Owner
from node_agent.podevents import PodEvents, PodReference, Reason
from node_agent.pods import ObservedPod
from node_agent.reservations import (
    ContainerReservation,
    container_claims,
    container_reservation,
    is_recorded,
    node_label,
    realized_annotations,
    same_claims,
    waiting_container,
)
from node_agent.steps import Steps
from node_agent.trust import Trust
from node_agent.turn import PodFinder, Turn, records_for

logger = logging.getLogger(__name__)

_PATCH_ATTEMPTS: Final = 5
_ROLLBACK_SECONDS: Final = 10.0
_UNCLEAR: Final = frozenset({0, 409, 500, 502, 503, 504})


class Clearance(Protocol):
    """Reclaims what other owners, whose Pods are over, left on a reserved placement."""

    def clear(self, owner: Owner, spec: InstanceSpec, deadline: Deadline) -> None:
        """Reclaim every instance of an owner that is over and overlaps the spec."""


@dataclass(frozen=True, slots=True)
class Allocated:
    """Which Pod was served, and what its container is given."""

    pod: str
    grant: Grant


@dataclass(frozen=True, slots=True)
class Checks:
    """Who is it, and is the reservation the scheduler's."""

    finder: PodFinder
    trust: Trust


class Allocator:
    """The use-case behind the kubelet's Allocate. Calls are served one after another."""

    def __init__(
        self,
        cluster: Cluster,
        instances: InstanceManager,
        clearance: Clearance,
        *,
        checks: Checks,
        delivery: Delivery,
        events: PodEvents,
    ) -> None:
        self._cluster = cluster
        self._delivery = delivery
        self._finder = checks.finder
        self._trust = checks.trust
        self._instances = instances
        self._clearance = clearance
        self._events = events
        self._turn = threading.Lock()
        self.serving = ""

    def allocate(self, device_ids: Sequence[str], deadline: Deadline) -> Allocated:
        """Serve one container. Raises :class:`AgentError` or :class:`DriverError`.

        After a refusal by identity nothing has been changed, on the hardware or on a Pod: the
        request may be another Pod's. After that, a failure marks the Pod's bind phase as failed
        and gives the node lock back.
        """
        if not self._turn.acquire(timeout=deadline.remaining):
            raise DeadlineExceeded("another Allocate on this node took too long")
        try:
            ids = tuple(sorted(device_ids))
            earlier = records_for(self._instances.records(), ids)
            turn = self._finder.find(len(ids), earlier)
            self.serving = turn.pod.uid
            pod = turn.pod
            with (
                about(request_id=new_request_id(), pod=pod.key, pod_uid=pod.uid),
                span("allocate"),
            ):
                if self._is_repetition(pod, ids, earlier):
                    return self._answer_again(turn, earlier, deadline)
                return self._serve(turn, ids, deadline)
        finally:
            self.serving = ""
            self._turn.release()

    def _serve(self, turn: Turn, ids: tuple[str, ...], deadline: Deadline) -> Allocated:
        pod = turn.pod
        steps = Steps()
        try:
            reservation = self._reservation(pod, len(ids))
            self._trust.check(pod)
            with steps.timed("making"):
                realized = self._realize(reservation, ids, deadline)
            with steps.timed("delivering"):
                grant = self._deliver(reservation, realized, deadline)
            with steps.timed("recording"):
                self._record(turn, reservation, realized)
        except NoPodToServe:
            raise
        except (AgentError, DriverError) as error:
            logger.warning("Allocate of %d MIG device(s) failed: %s", len(ids), error)
            self._events.tell(_reference(pod), Reason.ALLOCATION_FAILED, str(error))
            self._give_up(pod)
            raise
        note = f"Allocate of {len(ids)} MIG device(s) {steps}"
        logger.info(note)
        if steps.slow:
            self._events.tell(_reference(pod), Reason.ALLOCATION_SLOW, note)
        return Allocated(pod.key, grant)

    @staticmethod
    def _reservation(pod: ObservedPod, requested: int) -> ContainerReservation:
        """What the first waiting container is to be given, if the kubelet asks for just that."""
        index, listed = waiting_container(pod)
        if listed != requested:
            raise NoPodToServe(
                f"the kubelet asks for {requested} devices and Pod {pod.key}, whose turn it is, "
                f"waits for {listed}"
            )
        return container_reservation(pod, index, requested)

    @staticmethod
    def _is_repetition(
        pod: ObservedPod, ids: tuple[str, ...], earlier: tuple[InstanceRecord, ...]
    ) -> bool:
        """True when an earlier call with these ids was served, and its container waits no more."""
        mine = all(r.owner.pod_uid == pod.uid and r.identity is not None for r in earlier)
        if not earlier or not mine or len(earlier) != len(ids):
            return False
        waiting, listed = waiting_container(pod)
        return not (listed and waiting == earlier[0].owner.container_index)

    def _answer_again(
        self, turn: Turn, records: tuple[InstanceRecord, ...], deadline: Deadline
    ) -> Allocated:
        pod = turn.pod
        index = records[0].owner.container_index
        reservation = container_reservation(pod, index, len(records))
        realized = self._realize(reservation, records[0].device_ids, deadline)
        grant = self._hand_over(reservation, realized, deadline)
        self._finish(turn, pod)
        logger.info("Allocate of %d MIG device(s) answered again", len(records))
        return Allocated(pod.key, grant)

    def _realize(
        self, reservation: ContainerReservation, ids: tuple[str, ...], deadline: Deadline
    ) -> dict[Owner, RuntimeIdentity]:
        """Realize all devices of one container; what this call made is undone if one fails."""
        for claim in reservation.claims:
            self._instances.profile_of(claim.spec)
        realized: dict[Owner, RuntimeIdentity] = {}
        created: list[Claim] = []
        try:
            for claim in reservation.claims:
                self._clearance.clear(claim.owner, claim.spec, deadline)
                outcome = self._instances.realize(claim, ids, deadline)
                realized[claim.owner] = outcome.identity
                if outcome.created:
                    created.append(claim)
        except (AgentError, DriverError):
            self._undo(created)
            raise
        return realized

    def _deliver(
        self,
        reservation: ContainerReservation,
        realized: dict[Owner, RuntimeIdentity],
        deadline: Deadline,
    ) -> Grant:
        """Make ready what the runtime needs; instances that cannot be delivered are taken back."""
        try:
            return self._hand_over(reservation, realized, deadline)
        except (AgentError, DriverError):
            self._undo(reservation.claims)
            raise

    def _hand_over(
        self,
        reservation: ContainerReservation,
        realized: dict[Owner, RuntimeIdentity],
        deadline: Deadline,
    ) -> Grant:
        order = [(claim.spec.gpu_uuid, realized[claim.owner]) for claim in reservation.claims]
        return self._delivery.deliver(order, deadline)

    def _record(
        self,
        turn: Turn,
        reservation: ContainerReservation,
        realized: dict[Owner, RuntimeIdentity],
    ) -> None:
        """Write identities, list and bind phase in one patch; unlock when nothing is left.

        An instance whose annotation could not be written is taken back.
        """
        try:
            updated = self._patch(turn.pod, reservation, realized)
        except (AgentError, DriverError):
            self._undo(reservation.claims)
            raise
        self._finish(turn, updated)

    def _patch(
        self,
        pod: ObservedPod,
        reservation: ContainerReservation,
        realized: dict[Owner, RuntimeIdentity],
    ) -> ObservedPod:
        """Patch, merging on conflict; an unclear answer is settled by reading the Pod."""
        current = pod
        for _attempt in range(_PATCH_ATTEMPTS):
            changed = realized_annotations(current, realized, reservation.container_index)
            try:
                return self._cluster.patch_pod(current, changed, node_label(self._finder.node))
            except ClusterError as error:
                if error.status not in _UNCLEAR:
                    raise
                logger.info("recording Pod %s again after: %s", pod.key, error)
            current = self._read_again(pod, reservation)
            if is_recorded(current, realized):
                return current
        raise ClusterConflict(409, f"Pod {pod.key} keeps changing; its identity is not recorded")

    def _read_again(self, pod: ObservedPod, reservation: ContainerReservation) -> ObservedPod:
        """The Pod as it is now; it must be the same Pod with the same reservation."""
        fresh = self._cluster.pod(pod.namespace, pod.name)
        if fresh is None or fresh.uid != pod.uid:
            raise ReservationMismatch(f"Pod {pod.key} was deleted during Allocate")
        if fresh.deleting or fresh.terminal:
            raise ReservationMismatch(f"Pod {pod.key} ended during Allocate")
        claims = container_claims(fresh, reservation.container_index)
        if not same_claims(claims, reservation.claims):
            raise ReservationMismatch(f"the reservation of Pod {pod.key} changed during Allocate")
        return fresh

    def _finish(self, turn: Turn, pod: ObservedPod) -> None:
        if pod.annotations.get(keys.POD_BIND_PHASE) == keys.BIND_PHASE_SUCCESS:
            nodelock.unlock(self._cluster, pod.namespace, pod.name, turn.node)

    def _undo(self, claims: Sequence[Claim]) -> None:
        """Take instances back, last first. What resists stays on record for the reclaimer."""
        owners = {claim.owner for claim in claims}
        deadline = Deadline(_ROLLBACK_SECONDS)
        for record in reversed([r for r in self._instances.records() if r.owner in owners]):
            try:
                self._instances.release(record, deadline)
            except (AgentError, DriverError) as error:
                logger.warning("rollback of %s is left to the reclaimer: %s", record.spec, error)

    def _give_up(self, pod: ObservedPod) -> None:
        """Say on the Pod that its allocation failed, and let the next Pod have its turn."""
        try:
            fresh = self._cluster.pod(pod.namespace, pod.name)
            if fresh is not None and fresh.uid == pod.uid:
                self._cluster.patch_pod(fresh, {keys.POD_BIND_PHASE: keys.BIND_PHASE_FAILED})
        except ClusterError as error:
            logger.warning("cannot mark Pod %s as failed: %s", pod.key, error)
        nodelock.unlock(self._cluster, pod.namespace, pod.name)


def _reference(pod: ObservedPod) -> PodReference:
    return PodReference(pod.namespace, pod.name, pod.uid)
