"""What is doubtful about reservations on Pods, as intervals: unreadable, or not signed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from hami_web.inventory.observed import Difference, DifferenceKind, storable
from hami_web.reservations.models import DoubtKind, ReservationDoubt
from hami_web.reservations.observed import ObservedPod

TEXT_MAX = 1000
_CHUNK = 500
_Key = tuple[str, str]
"""Pod UID, kind."""


def mirror_doubts(
    pods: Sequence[ObservedPod], *, seen_at: datetime, complete: bool
) -> list[Difference]:
    """Make the doubts equal to what was seen; with ``complete`` all others are over.

    Inside a transaction. A doubt that ended or began after ``seen_at`` is left alone.
    """
    wanted = {(pod.uid, kind): (pod, text) for pod in pods for kind, text in _of(pod)}
    uids = None if complete else [pod.uid for pod in pods]
    known = {(row.pod_uid, row.kind): row for row in _live(uids)}
    differences = _end((row for key, row in known.items() if key not in wanted), seen_at)
    differences += _change(known, wanted)
    settled = _settled_since(wanted.keys() - known.keys(), seen_at)
    new = [
        _row(pod, kind, text, seen_at)
        for (uid, kind), (pod, text) in wanted.items()
        if (uid, kind) not in known and (uid, kind) not in settled
    ]
    ReservationDoubt.objects.bulk_create(new, batch_size=_CHUNK)
    return differences + [_difference(DifferenceKind.MISSING, row) for row in new]


def end_doubts(uids: Sequence[str], *, seen_at: datetime) -> None:
    """These Pods are over or gone; inside a transaction."""
    _end(_live(uids), seen_at)


def _of(pod: ObservedPod) -> Iterable[tuple[str, str]]:
    if pod.doubt:
        yield DoubtKind.MALFORMED.value, storable(pod.doubt, TEXT_MAX)
    if pod.unsigned:
        yield DoubtKind.UNSIGNED.value, storable(pod.unsigned, TEXT_MAX)


def _live(uids: Sequence[str] | None) -> list[ReservationDoubt]:
    live = ReservationDoubt.objects.filter(ended_at=None).order_by("id")
    if uids is None:
        return list(live)
    chunks = (uids[at : at + _CHUNK] for at in range(0, len(uids), _CHUNK))
    return [row for chunk in chunks for row in live.filter(pod_uid__in=chunk)]


def _settled_since(keys: Iterable[_Key], seen_at: datetime) -> set[_Key]:
    wanted = set(keys)
    if not wanted:
        return set()
    ended = ReservationDoubt.objects.filter(ended_at__gt=seen_at)
    return wanted & set(ended.values_list("pod_uid", "kind"))


def _end(rows: Iterable[ReservationDoubt], seen_at: datetime) -> list[Difference]:
    over = [row for row in rows if row.began_at <= seen_at]
    for row in over:
        row.ended_at = seen_at
    ReservationDoubt.objects.bulk_update(over, ["ended_at"], batch_size=_CHUNK)
    return [_difference(DifferenceKind.VANISHED, row) for row in over]


def _change(
    known: Mapping[_Key, ReservationDoubt], wanted: Mapping[_Key, tuple[ObservedPod, str]]
) -> list[Difference]:
    changed = []
    for key in known.keys() & wanted.keys():
        pod, text = wanted[key]
        row = known[key]
        facts = (pod.namespace, pod.name, pod.node, text)
        if (row.namespace, row.pod, row.node, row.text) != facts:
            row.namespace, row.pod, row.node, row.text = facts
            changed.append(row)
    ReservationDoubt.objects.bulk_update(
        changed, ["namespace", "pod", "node", "text"], batch_size=_CHUNK
    )
    return [_difference(DifferenceKind.CHANGED, row) for row in changed]


def _row(pod: ObservedPod, kind: str, text: str, seen_at: datetime) -> ReservationDoubt:
    return ReservationDoubt(
        pod_uid=pod.uid,
        namespace=pod.namespace,
        pod=pod.name,
        node=pod.node,
        kind=kind,
        text=text,
        began_at=seen_at,
    )


def _difference(kind: DifferenceKind, row: ReservationDoubt) -> Difference:
    return Difference(kind, "doubt", f"{row.namespace}/{row.pod} {row.kind}", row.text)
