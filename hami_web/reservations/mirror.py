"""Make the rows of reservations equal to what was seen on Pods; idempotent, in any order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import QuerySet

from hami_web.core.reservation import Reservation
from hami_web.inventory.observed import Difference, DifferenceKind
from hami_web.inventory.selectors import Figures, profile_figures
from hami_web.inventory.writing import writing
from hami_web.reservations.claims import phase_of, settle_claims
from hami_web.reservations.doubts import end_doubts, mirror_doubts
from hami_web.reservations.models import LIVE, MigReservation, Phase
from hami_web.reservations.observed import ObservedPod

_Key = tuple[str, int, int]
"""Pod UID, container index, device index: one device."""
_CHUNK = 500
"""UIDs of one query; SQLite bounds the number of parameters."""
_FACTS = (
    *("namespace", "pod", "node", "mig_uuid", "gpu_instance_id", "compute_instance_id"),
    *("reserved_at", "realized_at", "started_at", "terminating_at"),
    *("owner", "priority", "do_not_evict"),
)


def mirror_pods(
    pods: Sequence[ObservedPod], *, seen_at: datetime, now: datetime, complete: bool = False
) -> list[Difference]:
    """Write what was seen at ``seen_at``; with ``complete`` all other reservations are over.

    A Pod in doubt keeps the rows it has. Rows that follow from a later observation (up to
    ``now``) are left alone. Returns what changed.
    """
    with writing():
        rows = _live(None if complete else [pod.uid for pod in pods])
        known = {(r.pod_uid, r.container_index, r.device_index): r for r in rows}
        pass_ = _Pass(seen_at, now, _ended_since(pods, known, seen_at=seen_at, now=now))
        doubted = {pod.uid for pod in pods if pod.doubt}
        figures = profile_figures({item.gpu_uuid for pod in pods for item in pod.reservations})
        for pod in pods:
            if not pod.doubt:
                pass_.pod(pod, known, figures)
        listed = {pod.uid for pod in pods}
        pass_.release(
            row
            for (uid, *_), row in known.items()
            # A list of Pods says nothing of the holds of those that it does not have.
            if uid not in doubted and (uid in listed or row.phase != Phase.HELD)
        )
        pass_.write(everything=complete)
        doubts = mirror_doubts(pods, seen_at=seen_at, complete=complete)
        return pass_.differences + doubts


def release_pods(uids: Iterable[str], *, seen_at: datetime, now: datetime) -> list[Difference]:
    """These Pods are over or gone: end their reservations."""
    with writing():
        pass_ = _Pass(seen_at, now)
        ended = list(uids)
        pass_.release(_live(ended))
        end_doubts(ended, seen_at=seen_at)
        pass_.write(everything=False)
        return pass_.differences


def _live(uids: Sequence[str] | None) -> list[MigReservation]:
    live: QuerySet[MigReservation] = MigReservation.objects.filter(LIVE).order_by("id")
    if uids is None:
        return list(live)
    chunks = (uids[at : at + _CHUNK] for at in range(0, len(uids), _CHUNK))
    return [row for chunk in chunks for row in live.filter(pod_uid__in=chunk)]


def _ended_since(
    pods: Sequence[ObservedPod],
    known: Mapping[_Key, MigReservation],
    *,
    seen_at: datetime,
    now: datetime,
) -> frozenset[_Key]:
    """Of what has no live row, what a later observation ended: an old list does not revive it."""
    uids = [
        pod.uid
        for pod in pods
        if any((pod.uid, *item.key) not in known for item in pod.reservations)
    ]
    ended = MigReservation.objects.filter(
        phase=Phase.RELEASED, changed_at__gt=seen_at, changed_at__lte=now
    )
    keys = ("pod_uid", "container_index", "device_index")
    chunks = (uids[at : at + _CHUNK] for at in range(0, len(uids), _CHUNK))
    return frozenset(
        key for chunk in chunks for key in ended.filter(pod_uid__in=chunk).values_list(*keys)
    )


@dataclass(slots=True)
class _Pass:
    seen_at: datetime
    now: datetime
    ended: frozenset[_Key] = frozenset()
    differences: list[Difference] = field(default_factory=list)
    _new: list[MigReservation] = field(default_factory=list)
    _changed: list[MigReservation] = field(default_factory=list)
    _ended: list[MigReservation] = field(default_factory=list)

    def pod(
        self,
        pod: ObservedPod,
        known: dict[_Key, MigReservation],
        figures: Mapping[str, Figures],
    ) -> None:
        """Take one Pod's reservations out of ``known``; what stays there is over."""
        for item in pod.reservations:
            key = (pod.uid, *item.key)
            row = known.get(key)
            if row is None and key in self.ended:
                continue
            if row is not None and self._is_newer(row):
                del known[key]
                continue
            if row is None or not _is_same_place(row, item):
                # A reservation never moves: another place is another reservation.
                self._add(pod, item, figures.get(item.gpu_uuid))
                continue
            del known[key]
            self._update(row, pod, item)

    def release(self, rows: Iterable[MigReservation]) -> None:
        """End reservations, unless a later observation knows better."""
        for row in rows:
            if self._is_newer(row):
                continue
            was_bound = row.phase != Phase.HELD
            entity = "reservation" if was_bound else "hold"
            self.differences.append(Difference(DifferenceKind.VANISHED, entity, _name(row)))
            row.released_at = max(self.seen_at, row.reserved_at)
            row.phase = Phase.RELEASED if was_bound else Phase.LAPSED
            row.changed_at = self.seen_at
            self._ended.append(row)

    def write(self, *, everything: bool) -> None:
        """Ends first, so that a device or a memory slice is free for what follows."""
        ended = ["released_at", "phase", "changed_at"]
        MigReservation.objects.bulk_update(self._ended, ended, batch_size=_CHUNK)
        MigReservation.objects.bulk_update(
            self._changed, [*_FACTS, "phase", "changed_at"], batch_size=_CHUNK
        )
        MigReservation.objects.bulk_create(self._new, batch_size=_CHUNK)
        touched = {r.gpu_uuid for r in (*self._ended, *self._changed, *self._new)}
        wrong = settle_claims(None if everything else touched)
        if wrong and not touched:
            detail = f"{wrong} claims or phases"
            self.differences.append(Difference(DifferenceKind.CHANGED, "claims", "*", detail))

    def _add(self, pod: ObservedPod, item: Reservation, figures: Figures | None) -> None:
        began = pod.reserved_at or self.seen_at
        row = MigReservation(
            pod_uid=pod.uid,
            container_index=item.container_index,
            device_index=item.device_index,
            gpu_uuid=item.gpu_uuid,
            profile=item.profile,
            start=item.placement.start,
            size=item.placement.size,
            gpu_memory_slices=figures.memory_slices if figures else None,
            memory_mib=figures.memory_mib.get(item.profile) if figures else None,
            reserved_at=min(began, self.seen_at),
            changed_at=self.seen_at,
            phase=Phase.RESERVED,
        )
        self._take(row, pod, item)
        row.phase = phase_of(row)
        self.differences.append(Difference(DifferenceKind.MISSING, "reservation", _name(row)))
        self._new.append(row)

    def _update(self, row: MigReservation, pod: ObservedPod, item: Reservation) -> None:
        before = [getattr(row, name) for name in _FACTS]
        was_held = row.phase == Phase.HELD
        if was_held:
            # The annotation has whole seconds.
            bound_at = max(pod.reserved_at or row.reserved_at, row.reserved_at)
            row.reserved_at = min(bound_at, self.seen_at)
        self._take(row, pod, item)
        changed = [
            name for name, value in zip(_FACTS, before, strict=True) if getattr(row, name) != value
        ]
        if changed or was_held:
            row.phase = phase_of(row)
            row.changed_at = self.seen_at
            entity = "hold" if was_held else "reservation"
            self.differences.append(
                Difference(DifferenceKind.CHANGED, entity, _name(row), ", ".join(changed))
            )
            self._changed.append(row)

    def _take(self, row: MigReservation, pod: ObservedPod, item: Reservation) -> None:
        row.namespace, row.pod, row.node = pod.namespace, pod.name, pod.node
        row.priority, row.do_not_evict = pod.priority, pod.do_not_evict
        identity = item.identity
        row.mig_uuid = identity.mig_uuid if identity else ""
        row.gpu_instance_id = identity.gpu_instance_id if identity else None
        row.compute_instance_id = identity.compute_instance_id if identity else None
        row.owner = pod.owner
        row.started_at = row.started_at or pod.started_at.get(item.container_index)
        row.realized_at = (row.realized_at or self.seen_at) if identity else None
        row.terminating_at = (row.terminating_at or self.seen_at) if pod.deleting else None

    def _is_newer(self, row: MigReservation) -> bool:
        """A later observation made this row. A time in the future is no observation.

        Holds are told by the extender with its own clock; a Pod's annotation always follows them.
        """
        if row.phase == Phase.HELD:
            return False
        return self.seen_at < row.changed_at <= self.now


def _is_same_place(row: MigReservation, item: Reservation) -> bool:
    return (row.gpu_uuid, row.profile, row.placement) == (
        item.gpu_uuid,
        item.profile,
        item.placement,
    )


def _name(row: MigReservation) -> str:
    device = f"{row.container_index}.{row.device_index}"
    return f"{row.namespace}/{row.pod} {device} {row.profile} {row.gpu_uuid} {row.placement}"
