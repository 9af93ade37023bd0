"""Rows of what the extender holds for Pods that do not carry it yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hami_web.core.reservation import Reservation
from hami_web.inventory.selectors import Figures, profile_figures
from hami_web.reservations.models import LIVE, NEVER_BOUND, MigReservation, Phase

WHOLE_SECOND = timedelta(seconds=1)
_CHUNK = 500
_ENDED = ("phase", "released_at", "changed_at")


@dataclass(frozen=True, slots=True)
class ObservedHold:
    """All devices that are held for a Pod since a moment; none where its hold ended then."""

    uid: str
    namespace: str
    name: str
    node: str
    devices: tuple[Reservation, ...]
    at: datetime


def note_holds(holds: Sequence[ObservedHold]) -> None:
    """Write holds in the order in which they were made; inside a transaction.

    A hold whose reservation is on its Pod already only tells when that was held. One of other
    devices than before ends what was held before. Twice is once.
    """
    rows = _rows([hold.uid for hold in holds])
    figures = profile_figures({item.gpu_uuid for hold in holds for item in hold.devices})
    stored = [row for found in rows.values() for row in found]
    new: list[MigReservation] = []
    for hold in holds:
        known = rows[hold.uid]
        for row in known:
            if row.phase == Phase.HELD and row.reserved_at <= hold.at and not _is_part(row, hold):
                _lapse(row, hold.at)
        # A Pod is bound once: what was held for it before is of no interest then.
        is_bound = any(row.phase not in NEVER_BOUND for row in known)
        for item in hold.devices:
            there = [row for row in known if _is_at(row, item)]
            if not there and not is_bound:
                row = _row(hold, item, figures.get(item.gpu_uuid))
                known.append(row)
                new.append(row)
            elif there and there[-1].held_at is None:
                _tell_hold(there[-1], hold.at)
    MigReservation.objects.bulk_update(
        stored, [*_ENDED, "held_at", "reserved_at"], batch_size=_CHUNK
    )
    MigReservation.objects.bulk_create(new, batch_size=_CHUNK)


def lapse_holds(*, before: datetime, at: datetime) -> int:
    """End the holds that began before a moment and were never bound; returns how many."""
    rows = list(MigReservation.objects.filter(LIVE, phase=Phase.HELD, reserved_at__lt=before))
    for row in rows:
        _lapse(row, at)
    return MigReservation.objects.bulk_update(rows, _ENDED, batch_size=_CHUNK)


def _rows(uids: Sequence[str]) -> Mapping[str, list[MigReservation]]:
    """What is known of these Pods, oldest first, without what has lapsed."""
    found: defaultdict[str, list[MigReservation]] = defaultdict(list)
    for at in range(0, len(uids), _CHUNK):
        rows = MigReservation.objects.filter(pod_uid__in=uids[at : at + _CHUNK])
        for row in rows.exclude(phase=Phase.LAPSED).order_by("reserved_at", "id"):
            found[row.pod_uid].append(row)
    return found


def _is_part(row: MigReservation, hold: ObservedHold) -> bool:
    return row.node == hold.node and any(_is_at(row, item) for item in hold.devices)


def _is_at(row: MigReservation, item: Reservation) -> bool:
    key = (row.container_index, row.device_index)
    place = (row.gpu_uuid, row.profile, row.placement)
    is_over = row.phase == Phase.LAPSED
    return not is_over and (key, place) == (item.key, (item.gpu_uuid, item.profile, item.placement))


def _tell_hold(row: MigReservation, held_at: datetime) -> None:
    """A bound reservation learns when it was held, before a Binding of whole seconds."""
    if held_at - row.reserved_at < WHOLE_SECOND:
        row.reserved_at = max(row.reserved_at, held_at)
    row.held_at = min(held_at, row.reserved_at)


def _lapse(row: MigReservation, at: datetime) -> None:
    row.phase = Phase.LAPSED
    row.released_at = row.changed_at = max(at, row.reserved_at)


def _row(hold: ObservedHold, item: Reservation, figures: Figures | None) -> MigReservation:
    return MigReservation(
        pod_uid=hold.uid,
        namespace=hold.namespace,
        pod=hold.name,
        node=hold.node,
        container_index=item.container_index,
        device_index=item.device_index,
        gpu_uuid=item.gpu_uuid,
        profile=item.profile,
        start=item.placement.start,
        size=item.placement.size,
        gpu_memory_slices=figures.memory_slices if figures else None,
        memory_mib=figures.memory_mib.get(item.profile) if figures else None,
        phase=Phase.HELD,
        held_at=hold.at,
        reserved_at=hold.at,
        changed_at=hold.at,
    )
