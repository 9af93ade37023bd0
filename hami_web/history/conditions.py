"""Conditions that someone should look at, as the mirror shows them now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Q

from hami_web.core.annotations import MODE_MIG
from hami_web.core.blocked import is_reclaiming
from hami_web.core.reasons import Reason
from hami_web.inventory.models import LIVE, BlockedInterval, Node
from hami_web.reservations.models import (
    ContestedMemorySlice,
    DoubtKind,
    MigReservation,
    Phase,
    ReservationDoubt,
)

UNREALIZED_AFTER = timedelta(minutes=2)
"""An agent realizes in seconds; a Pod that pulls a large image has its instance long before."""
RECLAIM_AFTER = timedelta(minutes=10)
"""Longer than the usual grace periods of Pods."""
ORPHANED_AFTER = timedelta(minutes=2)
"""An agent destroys in seconds; what is there for longer, the driver refused to end."""
STALE_AFTER = timedelta(minutes=1)
"""An agent that restarts is back before."""


class AlertCode(StrEnum):
    """Stable codes of alerts."""

    UNREALIZED = "ReservationNotRealized"
    RECLAIM_STUCK = "ReclaimStuck"
    ORPHAN_INSTANCE = "OrphanInstance"
    FOREIGN_INSTANCE = "ForeignInstance"
    CONFLICT = "ReservationConflict"
    AGENT_STALE = "AgentStale"
    OTHER_OWNER = "OtherMigOwner"
    RESERVATION_MALFORMED = "ReservationMalformed"
    RESERVATION_UNSIGNED = "ReservationUnsigned"
    WORKER_SILENT = "WorkerSilent"
    HANDOVER_REGRESSED = "HandoverRegressed"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of this moment; (code, subject) is its identity."""

    code: AlertCode
    subject: str
    text: str
    namespace: str = ""


def conditions_of_mirror(now: datetime) -> Iterator[Condition]:
    """Everything in the mirror that someone should look at."""
    yield from _of_reservations(now)
    yield from _of_conflicts()
    yield from _of_instances(now)
    yield from _of_doubts()
    yield from _of_nodes(now)


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


def _of_conflicts() -> Iterator[Condition]:
    for row in ContestedMemorySlice.objects.select_related("reservation"):
        text = f"memory slice {row.memory_slice} is also claimed by {row.reservation}"
        subject = f"{row.gpu_uuid} {row.reservation_id}"
        yield Condition(AlertCode.CONFLICT, subject, text, row.reservation.namespace)


def _of_instances(now: datetime) -> Iterator[Condition]:
    for interval in BlockedInterval.objects.select_related("gpu__node"):
        subject = f"{interval.gpu.uuid} {interval.start}:{interval.size}"
        text = f"{interval.gpu.node.name}: {interval.reason or 'no reason given'}"
        if not is_reclaiming(interval.reason):
            yield Condition(AlertCode.FOREIGN_INSTANCE, subject, text)
        elif interval.since < now - ORPHANED_AFTER:
            yield Condition(AlertCode.ORPHAN_INSTANCE, subject, text)


def _of_doubts() -> Iterator[Condition]:
    codes = {
        DoubtKind.MALFORMED.value: AlertCode.RESERVATION_MALFORMED,
        DoubtKind.UNSIGNED.value: AlertCode.RESERVATION_UNSIGNED,
    }
    for row in ReservationDoubt.objects.filter(ended_at=None):
        text = f"{row.namespace}/{row.pod} on {row.node}: {row.text}"
        yield Condition(codes[row.kind], row.pod_uid, text, row.namespace)


def _of_nodes(now: datetime) -> Iterator[Condition]:
    stale = Node.objects.filter(LIVE, closed=Reason.NODE_STALE, changed_at__lt=now - STALE_AFTER)
    for node in stale:
        text = "the node is not ready or its agent is silent"
        yield Condition(AlertCode.AGENT_STALE, node.name, text)
    signed = ~Q(other_owner="") | Q(closed=Reason.NODE_OTHER_OWNER)
    shared = Node.objects.filter(LIVE, signed, gpus__mode=MODE_MIG, gpus__gone_at=None)
    for node in shared.distinct():
        text = f"GPUs that are managed here are cut by something else too: {_sign(node)}"
        if node.closed == Reason.NODE_OTHER_OWNER:
            text += "; nothing is placed, made or destroyed there until it is gone"
        yield Condition(AlertCode.OTHER_OWNER, node.name, text)


def _sign(node: Node) -> str:
    """What tells of the other owner; its published capability does so among the doubts."""
    return node.other_owner or next(map(str, node.doubts), "")


def _subject(row: MigReservation) -> str:
    return f"{row.pod_uid} {row.container_index}.{row.device_index}"
