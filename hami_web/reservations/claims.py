"""Who has each memory slice: claims, contested ones, and the phases that follow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from hami_web.reservations.models import (
    LIVE,
    ContestedMemorySlice,
    MemorySliceClaim,
    MigReservation,
    Phase,
)

Wanted = set[tuple[int, str, int]]
"""Reservation's key, GPU's UUID, memory slice."""
_CHUNK = 500
_Row = TypeVar("_Row", MemorySliceClaim, ContestedMemorySlice)


def settle_claims(gpu_uuids: Iterable[str] | None) -> int:
    """Make claims, contested memory slices and phases follow the live reservations of these GPUs.

    None means all GPUs. Of two reservations that overlap the one that was first keeps the claim.
    Returns how many rows were wrong.
    """
    uuids = None if gpu_uuids is None else sorted(set(gpu_uuids))
    # A hold is the extender's word; a claim follows from what a Pod carries.
    live = MigReservation.objects.filter(LIVE).exclude(phase=Phase.HELD)
    if uuids is not None:
        live = live.filter(gpu_uuid__in=uuids)
    rows = list(live.order_by("reserved_at", "id"))
    claimed, contested = _shares(rows)
    wrong = _make_equal(MemorySliceClaim, claimed, uuids)
    wrong += _make_equal(ContestedMemorySlice, contested, uuids)
    return wrong + _settle_phases(rows, claimed, contested)


def _shares(rows: Iterable[MigReservation]) -> tuple[Wanted, Wanted]:
    owners: dict[tuple[str, int], int] = {}
    claimed: Wanted = set()
    contested: Wanted = set()
    for row in rows:
        for memory_slice in range(row.start, row.start + row.size):
            owner = owners.setdefault((row.gpu_uuid, memory_slice), row.pk)
            share = claimed if owner == row.pk else contested
            share.add((row.pk, row.gpu_uuid, memory_slice))
    return claimed, contested


def _make_equal(model: type[_Row], wanted: Wanted, uuids: list[str] | None) -> int:
    """Delete first: a claim may pass from one reservation to another."""
    found = model.objects.all()
    if uuids is not None:
        found = found.filter(gpu_uuid__in=uuids)
    known = {(row.reservation_id, row.gpu_uuid, row.memory_slice): row.pk for row in found}
    surplus = [pk for key, pk in known.items() if key not in wanted]
    missing = sorted(wanted - known.keys())
    for at in range(0, len(surplus), _CHUNK):
        model.objects.filter(pk__in=surplus[at : at + _CHUNK]).delete()
    model.objects.bulk_create(
        model(reservation_id=pk, gpu_uuid=uuid, memory_slice=memory_slice)
        for pk, uuid, memory_slice in missing
    )
    return len(surplus) + len(missing)


def _settle_phases(rows: Iterable[MigReservation], claimed: Wanted, contested: Wanted) -> int:
    disputed = {(uuid, memory_slice) for _, uuid, memory_slice in contested}
    conflicted = {
        pk for pk, uuid, memory_slice in claimed | contested if (uuid, memory_slice) in disputed
    }
    changed = []
    for row in rows:
        phase = Phase.CONFLICTED if row.pk in conflicted else phase_of(row)
        if row.phase != phase:
            row.phase = phase
            changed.append(row)
    MigReservation.objects.bulk_update(changed, ["phase"])
    return len(changed)


def phase_of(row: MigReservation) -> Phase:
    """The phase that a reservation's own facts tell, overlaps aside."""
    if row.released_at is not None:
        return Phase.RELEASED
    if row.terminating_at is not None:
        return Phase.TERMINATING
    return Phase.REALIZED if row.mig_uuid else Phase.RESERVED
