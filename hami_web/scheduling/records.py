"""Immutable records of the cluster's occupancy: what ``ClusterState`` replaces, never changes.

A change on a node makes new records for the GPUs it concerns and for the node; everything else is
shared. So a snapshot is a copy of one mapping, and whoever holds it sees one moment for ever.
They refer to no one who refers back, so the garbage collector need not look at them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from hami_web.core.annotations import MODE_MIG
from hami_web.core.blocked import BlockedInterval
from hami_web.core.capability import GpuCapability
from hami_web.core.device_list import ListedDevice
from hami_web.core.errors import InvalidField
from hami_web.core.hami import Booked
from hami_web.core.placement import Placement
from hami_web.core.reasons import Reason
from hami_web.core.reservation import Reservation, RuntimeIdentity
from hami_web.core.tables import ProfileTable


class Phase(StrEnum):
    """How far a reservation has come."""

    HELD = "held"
    """Decided at ``/filter``, not yet on the Pod."""
    RESERVED = "reserved"
    """On the bound Pod, not yet realized."""
    REALIZED = "realized"
    """The agent wrote the runtime identity."""
    TERMINATING = "terminating"
    """The Pod is being deleted; its memory slices stay taken until it is gone."""
    CONFLICTED = "conflicted"
    """It overlaps another reservation; the GPU takes no new work."""


class PodIdentity(Struct, frozen=True, gc=False):
    """Which Pod: the UID is its identity, the names are for people."""

    namespace: str
    name: str
    uid: str
    priority: int = 0

    @property
    def full_name(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class Claim(Struct, frozen=True, gc=False):
    """One device's memory slices taken on a GPU, and by whom.

    ``like`` is the reservation but for the UUIDs, which stand beside it: a large cluster has few
    reservations that differ in more.
    """

    pod: PodIdentity
    phase: Phase
    like: Reservation
    gpu_uuid: str
    mig_uuid: str = ""

    @classmethod
    def of(cls, pod: PodIdentity, phase: Phase, reservation: Reservation) -> Claim:
        """The claim of a reservation that is at hand."""
        identity = reservation.identity
        mig_uuid = identity.mig_uuid if identity else ""
        return cls(pod, phase, reservation, reservation.gpu_uuid, mig_uuid)

    @property
    def reservation(self) -> Reservation:
        """The whole reservation, made anew where only its like is kept."""
        if self.like.gpu_uuid == self.gpu_uuid:
            return self.like
        return self.like.on(self.gpu_uuid, self.mig_uuid)

    @property
    def placement(self) -> Placement:
        return self.like.placement

    @property
    def profile(self) -> str:
        return self.like.profile

    @property
    def container_index(self) -> int:
        return self.like.container_index

    @property
    def identity(self) -> RuntimeIdentity | None:
        return self.reservation.identity


class GpuRecord(Struct, frozen=True, eq=False, gc=False):
    """One GPU at one moment. ``state`` is the table's integer for claims and blocked intervals."""

    capability: GpuCapability
    table: ProfileTable
    cordoned: bool
    claims: tuple[Claim, ...]
    blocked: tuple[BlockedInterval, ...]
    state: int
    conflicted: bool

    @property
    def refusal(self) -> Reason | None:
        """Why the GPU takes no new work from anyone, or None."""
        if not self.capability.healthy:
            return Reason.NOT_HEALTHY
        if self.cordoned:
            return Reason.CORDONED
        if self.capability.mode != MODE_MIG:
            return Reason.TYPE_MISMATCH
        if self.conflicted:
            return Reason.CONFLICT
        return None

    @property
    def booked(self) -> Booked:
        """What HAMi's score counts: instances, and the figures of their profiles."""
        booked = Booked()
        for claim in self.claims:
            shape = self.table.by_name.get(claim.like.profile)
            if shape is not None:
                booked = booked.plus(shape)
        return booked

    @property
    def free_memory_slices(self) -> int:
        return self.table.free_memory_slices(self.state)


class NodeRecord(Struct, frozen=True, eq=False, gc=False):
    """One node at one moment.

    ``closed`` is why no GPU of it takes new work; ``doubts`` are the texts behind it, for people.
    ``refused`` names the GPUs whose published capability contradicts itself. ``open_gpus`` are
    those that take new work, in order of index.
    """

    name: str
    version: int
    gpus: tuple[GpuRecord, ...]
    refused: tuple[tuple[str, InvalidField], ...]
    closed: Reason | None
    doubts: tuple[str, ...]
    open_gpus: tuple[GpuRecord, ...]
    unschedulable: bool = False

    @property
    def gpu_count(self) -> int:
        """All GPUs that the node published, usable or not."""
        return len(self.gpus) + len(self.refused)

    def gpu(self, uuid: str) -> GpuRecord | None:
        """A GPU by UUID."""
        return next((gpu for gpu in self.gpus if gpu.capability.uuid == uuid), None)


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """The whole cluster at one moment; ``version`` grows with every change."""

    version: int
    nodes: Mapping[str, NodeRecord]

    def claims(self) -> Iterable[tuple[NodeRecord, GpuRecord, Claim]]:
        """Every reservation with where it is."""
        for node in self.nodes.values():
            for gpu in node.gpus:
                for claim in gpu.claims:
                    yield node, gpu, claim


def occupy(
    capability: GpuCapability,
    table: ProfileTable,
    claims: Sequence[Claim],
    blocked: tuple[BlockedInterval, ...],
    *,
    cordoned: bool,
) -> GpuRecord:
    """The record of a GPU with these claims; overlapping ones are conflicted, and so is the GPU."""
    if not claims and not blocked:
        return GpuRecord(capability, table, cordoned, (), (), 0, conflicted=False)
    taken = starts = overlapping = 0
    for claim in claims:
        mask = claim.like.placement.mask
        overlapping |= taken & mask
        taken |= mask
        starts |= mask & -mask
    for interval in blocked:
        mask = interval.placement.mask
        taken |= mask
        starts |= mask & -mask
    if overlapping:
        claims = [
            replace(claim, phase=Phase.CONFLICTED) if claim.placement.mask & overlapping else claim
            for claim in claims
        ]
    state = table.counting(table.layout(taken, starts), [claim.like.profile for claim in claims])
    return GpuRecord(
        capability, table, cordoned, tuple(claims), blocked, state, conflicted=bool(overlapping)
    )


def joined(gpu: GpuRecord, claims: Sequence[Claim]) -> GpuRecord | None:
    """The record with more claims; None where one is not on free memory slices of the grid."""
    table, state = gpu.table, gpu.state
    taken = state | ~table.slice_mask
    for claim in claims:
        mask = claim.like.placement.mask
        if mask & taken:
            return None
        taken |= mask
        state |= table.layout(mask, mask & -mask)
    return GpuRecord(
        gpu.capability,
        table,
        gpu.cordoned,
        (*gpu.claims, *claims),
        gpu.blocked,
        table.counting(state, [claim.like.profile for claim in claims]),
        gpu.conflicted,
    )


def devices_of(
    record: NodeRecord | None, reservations: Sequence[Reservation], containers: int
) -> tuple[tuple[ListedDevice, ...], ...]:
    """The device lists of reservations, with the figures of the profiles that the node publishes.

    A profile that the node no longer publishes has no figures and counts as zero.
    """
    devices: list[list[ListedDevice]] = [[] for _ in range(containers)]
    for item in sorted(reservations, key=lambda reservation: reservation.key):
        gpu = None if record is None else record.gpu(item.gpu_uuid)
        profile = None if gpu is None else gpu.capability.by_name.get(item.profile)
        if item.container_index < containers:
            devices[item.container_index].append(
                ListedDevice(
                    item.gpu_uuid,
                    0 if profile is None else profile.memory_mib,
                    0 if profile is None else profile.core_percent,
                )
            )
    return tuple(tuple(container) for container in devices)
