"""Makes and destroys GPU instances, each with an owner, verified by a fresh look at the hardware.

The order is the safe one: lock the GPU, list, record the intent, create the GPU instance, verify,
create the compute instance, verify, record the result. Destroying goes the other way, and never by
an id alone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from hami_web.core.reservation import RuntimeIdentity
from hami_web.core.tracing import span
from node_agent.discovery import is_excluded
from node_agent.errors import (
    AgentError,
    CapabilityMismatch,
    DeadlineExceeded,
    DeliveryFailure,
    InstanceBusy,
    InstanceUnverified,
    OtherOwner,
    OwnerUnknown,
    PlacementTaken,
)
from node_agent.journal import Journal
from node_agent.locks import Deadline, GpuLocks
from node_agent.nvml.ports import (
    DriverError,
    DriverNotFound,
    DriverProfile,
    LiveInstance,
    MigDriver,
)
from node_agent.observer import Observer
from node_agent.ownership import Claim, InstanceRecord, InstanceSpec, Owner, RecordState, located
from node_agent.planning import identity_of
from node_agent.teardown import destroy_live, destroy_record, find_instance

logger = logging.getLogger(__name__)


_STANDS: Final = (InstanceBusy, InstanceUnverified, OtherOwner, OwnerUnknown, DeliveryFailure)
"""Refusals of ours for which an instance that is to be destroyed stays."""


@dataclass(frozen=True, slots=True)
class Realized:
    """An instance of a claim; ``created`` is False when it existed before the call."""

    identity: RuntimeIdentity
    created: bool


class InstanceManager:
    """All changes of instances on this node go through here. Thread-safe."""

    def __init__(
        self,
        driver: MigDriver,
        journal: Journal,
        locks: GpuLocks,
        clock: Callable[[], float] = time.time,
        observer: Observer | None = None,
        excluded: frozenset[str] = frozenset(),
    ) -> None:
        self._driver = driver
        self._journal = journal
        self._locks = locks
        self._clock = clock
        self._observer = observer or Observer()
        self._excluded = excluded
        self._profiles: dict[str, tuple[DriverProfile, ...]] = {}

    def records(self) -> tuple[InstanceRecord, ...]:
        """Every instance of ours, whatever its state."""
        return self._journal.records()

    def profile_of(self, spec: InstanceSpec) -> DriverProfile:
        """The profile NVML knows for a spec. Raises :class:`CapabilityMismatch`."""
        profiles = self._profiles_of(spec.gpu_uuid)
        profile = next((p for p in profiles if p.name == spec.profile), None)
        if profile is None:
            names = ", ".join(p.name for p in profiles)
            raise CapabilityMismatch(
                f"profile {spec.profile} does not exist on {spec.gpu_uuid}; it has: {names}"
            )
        if spec.placement not in profile.placements:
            legal = ", ".join(str(placement) for placement in profile.placements)
            raise CapabilityMismatch(
                f"placement {spec.placement} of {spec.profile} does not exist on {spec.gpu_uuid}; "
                f"legal: {legal}"
            )
        return profile

    def _profiles_of(self, gpu_uuid: str) -> tuple[DriverProfile, ...]:
        """Read once: they do not change while MIG mode is on and the driver stays loaded."""
        known = self._profiles.get(gpu_uuid)
        if known:
            return known
        try:
            gpu = self._driver.gpu(gpu_uuid)
            profiles = self._driver.profiles(gpu_uuid)
        except DriverNotFound as error:
            raise CapabilityMismatch(f"GPU {gpu_uuid} is not on this node") from error
        if is_excluded(gpu, self._excluded):
            raise CapabilityMismatch(f"GPU {gpu_uuid} is excluded by HAMI_EXCLUDED_GPUS")
        self._profiles[gpu_uuid] = profiles
        return profiles

    def realize(self, claim: Claim, device_ids: tuple[str, ...], deadline: Deadline) -> Realized:
        """Return the claim's instance, made now if it is not there.

        The same owner and spec get the same instance however often this is called. Raises
        :class:`AgentError` or :class:`DriverError`; then nothing of this call is left behind, or
        what is left is a record that the reclaimer finishes.
        """
        profile = self.profile_of(claim.spec)
        with self._locks.hold(claim.spec.gpu_uuid, deadline):
            known = self._journal.get(claim.owner)
            if known is not None and known.spec != claim.spec:
                raise PlacementTaken(f"{claim.owner} already owns {known.spec}, not {claim.spec}")
            if known is not None and known.state is RecordState.RECLAIMING:
                raise PlacementTaken(f"{claim.spec} of {claim.owner} is being reclaimed")
            live = self._refuse_overlap(claim, profile)
            if live is not None and known is not None:
                return self._take_up(claim, known, live, device_ids)
            return self._create(claim, profile, device_ids, deadline)

    def release(self, record: InstanceRecord, deadline: Deadline) -> None:
        """Destroy the instance of a record, and forget the record once it is seen gone.

        Raises :class:`DriverError` or :class:`AgentError` when it cannot be destroyed now; the
        record stays, as reclaiming, with the reason. A record that changed since is left alone.
        """
        with self._locks.hold(record.spec.gpu_uuid, deadline):
            current = self._journal.get(record.owner)
            if current is None or current.spec != record.spec:
                return
            started = time.monotonic()
            try:
                with span("nvml destroy", **located(current)):
                    destroy_record(self._driver, current)
                self._observer.took("destroy", time.monotonic() - started)
                self._observer.gone(current)
            except (DriverError, *_STANDS) as error:
                self._mark_reclaiming(current, str(error))
                raise
            self._journal.remove(record.owner)
            logger.info("reclaimed instance", extra=located(record))

    def adopt(self, claim: Claim, live: LiveInstance) -> None:
        """Take over an instance that annotation and NVML agree on."""
        identity = identity_of(live)
        if identity is None:
            raise InstanceUnverified(f"{claim.spec} has no single compute instance")
        known = self._journal.get(claim.owner)
        record = self._record(claim, live.profile_id, known.device_ids if known else ())
        self._journal.put(replace(record, state=RecordState.REALIZED, identity=identity))

    def forget(self, owner: Owner) -> None:
        """Drop a record whose instance is known not to exist."""
        self._journal.remove(owner)

    def _refuse_overlap(self, claim: Claim, profile: DriverProfile) -> LiveInstance | None:
        """The instance that lies exactly there and may be the claim's own, or None for free."""
        overlapping = [
            live
            for live in self._driver.instances(claim.spec.gpu_uuid)
            if live.placement.overlaps(claim.spec.placement)
        ]
        own = self._journal.get(claim.owner)
        for record in self._journal.records():
            if record.owner != claim.owner and _overlap(record.spec, claim.spec):
                raise PlacementTaken(
                    f"{claim.spec} is held by Pod {record.pod} ({record.spec}, {record.state})"
                )
        for live in overlapping:
            exact = (live.placement, live.profile_id) == (claim.spec.placement, profile.profile_id)
            if own is None or not exact:
                raise PlacementTaken(
                    f"{claim.spec} is taken by GPU instance {live.gpu_instance_id} at "
                    f"{live.placement}, which no Pod of this agent owns; the placement is free "
                    "again when that instance is destroyed"
                )
        return overlapping[0] if overlapping else None

    def _take_up(
        self,
        claim: Claim,
        known: InstanceRecord,
        live: LiveInstance,
        device_ids: tuple[str, ...],
    ) -> Realized:
        """A repeated call, or one that was interrupted after the GPU instance was made."""
        if not live.compute_instances:
            self._driver.create_compute_instance(live.gpu_uuid, live.gpu_instance_id)
        identity = self._verify(claim.spec, live)
        if known.identity is not None and known.identity != identity:
            raise PlacementTaken(
                f"{claim.spec} holds {identity.mig_uuid}, not the {known.identity.mig_uuid} "
                f"that was made for {claim.pod}; it was changed from outside"
            )
        record = self._record(claim, known.profile_id, device_ids)
        self._journal.put(replace(record, state=RecordState.REALIZED, identity=identity))
        return Realized(identity, created=False)

    def _create(
        self,
        claim: Claim,
        profile: DriverProfile,
        device_ids: tuple[str, ...],
        deadline: Deadline,
    ) -> Realized:
        if deadline.expired:
            raise DeadlineExceeded(f"no time is left to create {claim.spec}")
        intent = self._record(claim, profile.profile_id, device_ids)
        self._journal.put(intent)
        started = time.monotonic()
        try:
            with span("nvml create GPU instance", **located(claim)):
                live = self._driver.create_gpu_instance(
                    claim.spec.gpu_uuid, profile.profile_id, claim.spec.placement
                )
        except (DriverError, OtherOwner, OwnerUnknown):
            # Nothing of ours exists. Should an instance lie there now, somebody else made it
            # between the listing and the call, and it is not ours to take back.
            self._journal.remove(intent.owner)
            raise
        try:
            with span("nvml create compute instance"):
                self._driver.create_compute_instance(claim.spec.gpu_uuid, live.gpu_instance_id)
            self._observer.took("create", time.monotonic() - started)
            identity = self._verify(claim.spec, live)
            if deadline.expired:
                raise DeadlineExceeded(f"creating {claim.spec} took too long")
            self._journal.put(replace(intent, state=RecordState.REALIZED, identity=identity))
        except (DriverError, AgentError) as error:
            self._roll_back(intent, live, error)
            raise
        fields = located(claim) | {"mig_uuid": identity.mig_uuid}
        logger.info("realized instance", extra=fields)
        return Realized(identity, created=True)

    def _verify(self, spec: InstanceSpec, expected: LiveInstance) -> RuntimeIdentity:
        """Look anew: created is only what a fresh listing shows, whole and where it should be."""
        found = find_instance(self._driver, spec, expected.profile_id)
        if found is None or found.gpu_instance_id != expected.gpu_instance_id:
            raise InstanceUnverified(f"NVML reported {spec} as created and does not list it")
        identity = identity_of(found)
        if identity is None:
            raise InstanceUnverified(
                f"{spec} has {len(found.compute_instances)} compute instances where one is expected"
            )
        return identity

    def _roll_back(self, intent: InstanceRecord, made: LiveInstance, cause: Exception) -> None:
        """Take back what this call made. What resists stays on record for the reclaimer."""
        try:
            found = find_instance(self._driver, intent.spec, intent.profile_id)
            if found is not None and found.gpu_instance_id == made.gpu_instance_id:
                destroy_live(self._driver, found)
            self._journal.remove(intent.owner)
        except (DriverError, AgentError) as error:
            fields = located(intent)
            logger.warning("rollback after %s is left: %s", cause, error, extra=fields)
            self._mark_reclaiming(intent, f"rollback after: {cause}; refused: {error}")

    def _mark_reclaiming(self, record: InstanceRecord, reason: str) -> None:
        known = record.state is RecordState.RECLAIMING
        since = record.since if known else self._clock()
        try:
            self._journal.put(
                replace(record, state=RecordState.RECLAIMING, since=since, reason=reason)
            )
        except AgentError:
            logger.exception("cannot record that %s is being reclaimed", record.spec)

    def _record(self, claim: Claim, profile_id: int, device_ids: tuple[str, ...]) -> InstanceRecord:
        return InstanceRecord(
            owner=claim.owner,
            namespace=claim.namespace,
            pod_name=claim.pod_name,
            spec=claim.spec,
            profile_id=profile_id,
            state=RecordState.INTENT,
            identity=None,
            device_ids=device_ids,
            since=self._clock(),
        )


def _overlap(one: InstanceSpec, other: InstanceSpec) -> bool:
    return one.gpu_uuid == other.gpu_uuid and one.placement.overlaps(other.placement)
