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
from hami_web.core.reservation import RuntimeIdentity
from node_agent import nodelock
from node_agent.cluster import Cluster
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
from node_agent.ownership import Claim, InstanceRecord, InstanceSpec, Owner, RecordState
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

logger = logging.getLogger(__name__)

_PATCH_ATTEMPTS: Final = 5
_PHASES_IN_FLIGHT: Final = (keys.BIND_PHASE_ALLOCATING, keys.BIND_PHASE_SUCCESS)
_ROLLBACK_SECONDS: Final = 10.0
_UNCLEAR: Final = frozenset({0, 409, 500, 502, 503, 504})


class Clearance(Protocol):
    """Reclaims what other owners, whose Pods are over, left on a reserved placement."""

    def clear(self, owner: Owner, spec: InstanceSpec, deadline: Deadline) -> None:
        """Reclaim every instance of an owner that is over and overlaps the spec."""


@dataclass(frozen=True, slots=True)
class Allocated:
    """What the container is given: MIG UUIDs in device order."""

    pod: str
    mig_uuids: tuple[str, ...]


class Allocator:
    """The use-case behind the kubelet's Allocate. Calls are served one after another."""

    def __init__(
        self, cluster: Cluster, instances: InstanceManager, clearance: Clearance, node: str
    ) -> None:
        self._cluster = cluster
        self._instances = instances
        self._clearance = clearance
        self._node = node
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
            pod = self._pod_to_serve(ids)
            self.serving = pod.uid
            repeated = self._repeated(pod, ids)
            if repeated is not None:
                return self._answer_again(pod, repeated, deadline)
            return self._serve(pod, ids, deadline)
        finally:
            self.serving = ""
            self._turn.release()

    def _serve(self, pod: ObservedPod, ids: tuple[str, ...], deadline: Deadline) -> Allocated:
        try:
            reservation = self._reservation(pod, len(ids))
            realized = self._realize(reservation, ids, deadline)
            self._record(pod, reservation, realized)
        except NoPodToServe:
            raise
        except (AgentError, DriverError):
            self._give_up(pod)
            raise
        return Allocated(
            pod.key, tuple(realized[claim.owner].mig_uuid for claim in reservation.claims)
        )

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

    def _pod_to_serve(self, ids: tuple[str, ...]) -> ObservedPod:
        """The one Pod this call can be for. Raises :class:`NoPodToServe`."""
        lock = nodelock.holder(self._cluster.node())
        if lock is None:
            return self._served_before(ids)
        if not lock.pod_name:
            raise NoPodToServe(f"the lock of node {self._node} names no Pod")
        pod = self._cluster.pod(lock.namespace, lock.pod_name)
        if pod is None:
            raise NoPodToServe(
                f"Pod {lock.namespace}/{lock.pod_name} holds the lock of node {self._node} and "
                "does not exist"
            )
        served = any(record.owner.pod_uid == pod.uid for record in self._records_of(ids))
        # A call that was interrupted after its patch is repeated with the same ids.
        self._check(pod, _PHASES_IN_FLIGHT if served else (keys.BIND_PHASE_ALLOCATING,))
        return pod

    def _check(self, pod: ObservedPod, bind_phases: Sequence[str]) -> None:
        assigned = pod.annotations.get(keys.POD_NODE, "")
        bind_phase = pod.annotations.get(keys.POD_BIND_PHASE, "")
        wrong = ""
        if pod.node != self._node or assigned != self._node:
            wrong = f"runs on {pod.node!r} and is reserved on {assigned!r}, not on {self._node!r}"
        elif pod.phase != "Pending" or pod.deleting:
            wrong = f"is {'being deleted' if pod.deleting else pod.phase}, not Pending"
        elif bind_phase not in bind_phases:
            wrong = f"has bind phase {bind_phase!r}, not {' or '.join(bind_phases)}"
        if wrong:
            raise NoPodToServe(f"Pod {pod.key}, whose turn it is on node {self._node}, {wrong}")

    def _served_before(self, ids: tuple[str, ...]) -> ObservedPod:
        """Nobody holds the lock: only a repetition of a call that succeeded can be served."""
        records = self._records_of(ids)
        pod = self._cluster.pod(records[0].namespace, records[0].pod_name) if records else None
        if pod is None or pod.uid != records[0].owner.pod_uid or pod.states:
            raise NoPodToServe(
                f"no Pod holds the lock of node {self._node}; Pods that ask for GPUs must be "
                "placed by the scheduler with the HAMi extender (spec.schedulerName)"
            )
        self._check(pod, (keys.BIND_PHASE_SUCCESS,))
        return pod

    def _repeated(
        self, pod: ObservedPod, ids: tuple[str, ...]
    ) -> tuple[InstanceRecord, ...] | None:
        """Records of an earlier call with the same ids, whose container waits no longer."""
        records = self._records_of(ids)
        if not records or any(r.owner.pod_uid != pod.uid for r in records):
            return None
        if any(r.identity is None for r in records) or len(records) != len(ids):
            return None
        waiting, listed = waiting_container(pod)
        return None if listed and waiting == records[0].owner.container_index else records

    def _records_of(self, ids: tuple[str, ...]) -> tuple[InstanceRecord, ...]:
        """Realized instances that were made for exactly these kubelet ids, of one container."""
        records = [
            record
            for record in self._instances.records()
            if record.device_ids == ids and record.state is RecordState.REALIZED
        ]
        containers = {(r.owner.pod_uid, r.owner.container_index) for r in records}
        return tuple(sorted(records, key=lambda r: r.owner)) if len(containers) == 1 else ()

    def _answer_again(
        self, pod: ObservedPod, records: tuple[InstanceRecord, ...], deadline: Deadline
    ) -> Allocated:
        index = records[0].owner.container_index
        reservation = container_reservation(pod, index, len(records))
        realized = self._realize(reservation, records[0].device_ids, deadline)
        self._finish(pod)
        return Allocated(
            pod.key, tuple(realized[claim.owner].mig_uuid for claim in reservation.claims)
        )

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

    def _record(
        self,
        pod: ObservedPod,
        reservation: ContainerReservation,
        realized: dict[Owner, RuntimeIdentity],
    ) -> None:
        """Write identities, list and bind phase in one patch; unlock when nothing is left.

        An instance whose annotation could not be written is taken back.
        """
        try:
            updated = self._patch(pod, reservation, realized)
        except (AgentError, DriverError):
            self._undo(reservation.claims)
            raise
        self._finish(updated)

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
                return self._cluster.patch_pod(current, changed, node_label(self._node))
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

    def _finish(self, pod: ObservedPod) -> None:
        if pod.annotations.get(keys.POD_BIND_PHASE) == keys.BIND_PHASE_SUCCESS:
            nodelock.unlock(self._cluster, pod.namespace, pod.name)

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
