"""Conditions that someone should look at: found in the mirror, opened and resolved as rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from hami_web.core.reasons import Reason
from hami_web.history.models import Alert
from hami_web.inventory.models import LIVE, BlockedInterval, Node
from hami_web.inventory.writing import writing
from hami_web.reservations.models import ContestedMemorySlice, MigReservation, Phase

UNREALIZED_AFTER = timedelta(minutes=2)
"""An agent realizes in seconds; a Pod that pulls a large image has its instance long before."""
RECLAIM_AFTER = timedelta(minutes=10)
"""Longer than the usual grace periods of Pods."""


class AlertCode(StrEnum):
    """Stable codes of alerts."""

    UNREALIZED = "ReservationNotRealized"
    RECLAIM_STUCK = "ReclaimStuck"
    FOREIGN_INSTANCE = "ForeignInstance"
    CONFLICT = "ReservationConflict"
    AGENT_STALE = "AgentStale"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of this moment; (code, subject) is its identity."""

    code: AlertCode
    subject: str
    text: str
    namespace: str = ""


def refresh_alerts(now: datetime) -> None:
    """Open an alert for every condition that holds, and resolve those whose condition is over."""
    with writing():
        holding = {(found.code.value, found.subject): found for found in _conditions(now)}
        open_rows = list(Alert.objects.filter(resolved_at=None))
        known = {(row.code, row.subject): row for row in open_rows}
        for key, row in known.items():
            found = holding.get(key)
            if found is None:
                row.resolved_at = now
            else:
                row.seen_at, row.text = now, found.text
        Alert.objects.bulk_update(open_rows, ["resolved_at", "seen_at", "text"], batch_size=500)
        Alert.objects.bulk_create(
            Alert(
                code=found.code.value,
                subject=found.subject,
                namespace=found.namespace,
                text=found.text,
                raised_at=now,
                seen_at=now,
            )
            for key, found in holding.items()
            if key not in known
        )


def _conditions(now: datetime) -> Iterator[Condition]:
    yield from _of_reservations(now)
    contested = ContestedMemorySlice.objects.select_related("reservation")
    for row in contested:
        text = f"memory slice {row.memory_slice} is also claimed by {row.reservation}"
        subject = f"{row.gpu_uuid} {row.reservation_id}"
        yield Condition(AlertCode.CONFLICT, subject, text, row.reservation.namespace)
    for interval in BlockedInterval.objects.select_related("gpu__node"):
        place = f"{interval.start}:{interval.size}"
        text = f"{interval.gpu.node.name}: {interval.reason or 'no reason given'}"
        yield Condition(AlertCode.FOREIGN_INSTANCE, f"{interval.gpu.uuid} {place}", text)
    for node in Node.objects.filter(LIVE, closed=Reason.NODE_STALE):
        text = "the node is not ready or its agent is silent"
        yield Condition(AlertCode.AGENT_STALE, node.name, text)


def _of_reservations(now: datetime) -> Iterator[Condition]:
    late = MigReservation.objects.filter(
        phase=Phase.RESERVED, reserved_at__lt=now - UNREALIZED_AFTER
    )
    for row in late:
        text = f"reserved since {row.reserved_at:%F %T} UTC, not realized: {row}"
        yield Condition(AlertCode.UNREALIZED, _subject(row), text, row.namespace)
    stuck = MigReservation.objects.filter(
        phase=Phase.TERMINATING, terminating_at__lt=now - RECLAIM_AFTER
    )
    for row in stuck:
        text = f"being deleted since {row.terminating_at:%F %T} UTC: {row}"
        yield Condition(AlertCode.RECLAIM_STUCK, _subject(row), text, row.namespace)


def _subject(row: MigReservation) -> str:
    return f"{row.pod_uid} {row.container_index}.{row.device_index}"
