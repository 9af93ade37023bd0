"""Which Pods to move so that placements of a profile become free; nothing is ever moved here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hami_web.core.drain import DrainPlan, plan_drain
from hami_web.core.housing import Housing, Tenant
from hami_web.core.placement import Placement
from hami_web.scheduling.records import Claim, GpuRecord, NodeRecord, Phase
from hami_web.scheduling.refusal import housing_of

PRIORITY_MAX: Final = 1_000_000_000
"""The highest priority that users may give; above it are the cluster's own Pods."""
WANTED: Final = "wanted"
MOVED: Final = "moved"


@dataclass(frozen=True, slots=True)
class DrainQuestion:
    """``count`` placements of a profile; Pods above ``max_priority`` stay where they are."""

    profile: str
    count: int
    max_priority: int = PRIORITY_MAX


@dataclass(frozen=True, slots=True)
class Interval:
    """Memory slices of a GPU: a reservation's, or ``wanted`` ones, or those of a Pod that moved."""

    placement: Placement
    state: str
    profile: str
    claim: Claim | None = None


@dataclass(frozen=True, slots=True)
class GpuChange:
    """A GPU that the plan touches, before and after."""

    node: str
    gpu_uuid: str
    before: tuple[Interval, ...]
    after: tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """One Pod with its reservations; ``homes`` are empty where no other place was found."""

    claims: tuple[Claim, ...]
    node: str
    homes: tuple[tuple[str, str, Placement], ...]


@dataclass(frozen=True, slots=True)
class DrainAnswer:
    """A plan with what it changes.

    ``moves`` are the fewest Pods (``exact`` is false where not all sets were tried); ``leaving``
    are reservations in the way whose Pods are being deleted anyway. ``placements`` are those that
    are free afterwards. ``cordoned`` are the GPUs by node that take no new work already.
    """

    exact: bool
    moves: tuple[Move, ...]
    leaving: tuple[Claim, ...]
    placements: tuple[tuple[str, str, Placement], ...]
    changes: tuple[GpuChange, ...]
    cordoned: Mapping[str, tuple[str, ...]]


def free_now(records: Mapping[str, NodeRecord], profile: str) -> int:
    """Placements of a profile that are free as it is."""
    return sum(
        gpu.table.most(gpu.state, shape)
        for _, gpu in _open(records)
        if (shape := gpu.table.by_name.get(profile)) is not None
    )


def plan(
    records: Mapping[str, NodeRecord], question: DrainQuestion, protected: frozenset[str]
) -> DrainAnswer | None:
    """The fewest Pods to move, or None where no moves that are allowed are enough.

    GPUs that take no work are left alone. Pods that are being deleted leave by themselves, and
    those that are only held for are about to come.
    """
    housings = [_staying(housing_of(node, gpu), gpu) for node, gpu in _open(records)]
    coming = {
        claim.pod.uid
        for _, gpu in _open(records)
        for claim in gpu.claims
        if claim.phase is Phase.HELD
    }
    fixed = protected | coming

    def may_move(tenant: Tenant) -> bool:
        return tenant.owner not in fixed and tenant.priority <= question.max_priority

    found = plan_drain(housings, question.profile, question.count, may_move=may_move)
    return None if found is None else _answer(records, question.profile, found)


def _open(records: Mapping[str, NodeRecord]) -> Iterator[tuple[str, GpuRecord]]:
    for name in sorted(records):
        if not records[name].unschedulable:
            for gpu in records[name].open_gpus:
                yield name, gpu


def _staying(housing: Housing, gpu: GpuRecord) -> Housing:
    leaving = {claim.pod.uid for claim in gpu.claims if claim.phase is Phase.TERMINATING}
    if not leaving:
        return housing
    kept = tuple(tenant for tenant in housing.tenants if tenant.owner not in leaving)
    return replace(housing, tenants=kept)


def _answer(records: Mapping[str, NodeRecord], profile: str, found: DrainPlan) -> DrainAnswer:
    moves = _moves(records, found)
    new: dict[str, list[Interval]] = {}
    for _, uuid, place in found.placements:
        new.setdefault(uuid, []).append(Interval(place, WANTED, profile))
    for move in moves:
        for claim, (_, uuid, place) in zip(move.claims, move.homes, strict=False):
            new.setdefault(uuid, []).append(Interval(place, MOVED, claim.profile, claim))
    left = {claim.reservation.gpu_uuid for move in moves for claim in move.claims}
    changes = tuple(
        _change(node, gpu, new.get(gpu.capability.uuid, ()), frozenset(found.owners))
        for node, gpu in _open(records)
        if gpu.capability.uuid in new or gpu.capability.uuid in left
    )
    targets = {node for node, _, _ in found.placements}
    return DrainAnswer(
        found.exact,
        moves,
        tuple(_leaving(changes)),
        found.placements,
        changes,
        {node: _cordoned(records[node]) for node in sorted(targets)},
    )


def _moves(records: Mapping[str, NodeRecord], found: DrainPlan) -> tuple[Move, ...]:
    """Each Pod with its reservations largest first, the order in which the core houses them.

    A Pod of which a reservation is on a GPU that takes no work has no home for all of them.
    """
    owners = frozenset(found.owners)
    claims: dict[str, list[Claim]] = {}
    nodes: dict[str, str] = {}
    for name, record in records.items():
        for gpu in record.gpus:
            for claim in gpu.claims:
                if claim.pod.uid in owners:
                    claims.setdefault(claim.pod.uid, []).append(claim)
                    nodes[claim.pod.uid] = name
    moves = []
    for owner in found.owners:
        own = sorted(claims[owner], key=lambda claim: (-claim.placement.size, claim.placement))
        homes = found.homes.get(owner, ())
        moves.append(Move(tuple(own), nodes[owner], homes if len(homes) == len(own) else ()))
    return tuple(moves)


def _change(
    node: str, gpu: GpuRecord, new: Sequence[Interval], owners: frozenset[str]
) -> GpuChange:
    before = [Interval(c.placement, c.phase.value, c.profile, c) for c in gpu.claims]
    kept = [
        Interval(c.placement, c.phase.value, c.profile, c)
        for c in gpu.claims
        if c.pod.uid not in owners and c.phase is not Phase.TERMINATING
    ]
    return GpuChange(node, gpu.capability.uuid, _ordered(before), _ordered([*kept, *new]))


def _leaving(changes: Sequence[GpuChange]) -> Iterator[Claim]:
    """Reservations that end by themselves, and that something new of the plan waits for."""
    for change in changes:
        new = [item.placement for item in change.after if item.state in (WANTED, MOVED)]
        for item in change.before:
            leaves = item.claim is not None and item.claim.phase is Phase.TERMINATING
            if leaves and item.claim and any(map(item.placement.overlaps, new)):
                yield item.claim


def _ordered(items: Sequence[Interval]) -> tuple[Interval, ...]:
    return tuple(sorted(items, key=lambda item: item.placement))


def _cordoned(record: NodeRecord) -> tuple[str, ...]:
    return tuple(gpu.capability.uuid for gpu in record.gpus if gpu.cordoned)
