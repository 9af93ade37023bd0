"""Write down what people and programs did, and prune only what retention allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db import transaction

from hami_web.access.caller import Caller, Source
from hami_web.access.models import TEXT_MAX, AuditEntry, AuditPruning, Outcome

Values = Mapping[str, Any]
"""What changed, as JSON; never secrets."""
CHUNK: Final = 1000
RETENTION: Final = "audit.retention"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts, from where, in which request."""

    name: str
    source: Source
    role: str = ""
    address: str = ""
    request_id: str = ""

    @classmethod
    def of(cls, caller: Caller, *, address: str = "", request_id: str = "") -> Actor:
        """The caller of a request."""
        return cls(caller.name, caller.source, caller.role or "", address, request_id)


@dataclass(frozen=True, slots=True)
class Action:
    """A verb such as ``gpu.cordon`` on an object: its kind, name and, where it has one, namespace.

    ``before`` and ``after`` say what changed.
    """

    verb: str
    kind: str = ""
    name: str = ""
    namespace: str = ""
    before: Values | None = None
    after: Values | None = None


@dataclass(slots=True)
class Progress:
    """What an :func:`audited` block tells of its result."""

    before: Values | None = None
    after: Values | None = None
    outcome: Outcome = Outcome.DONE
    detail: str = ""


def record(
    actor: Actor, action: Action, *, outcome: Outcome = Outcome.DONE, detail: str = ""
) -> AuditEntry:
    """Store one entry; raises DatabaseError where it cannot, so that nothing happens unseen."""
    return AuditEntry.objects.create(
        at=datetime.now(UTC),
        actor=_storable(actor.name),
        source=actor.source,
        role=actor.role,
        address=actor.address,
        request_id=actor.request_id,
        verb=action.verb,
        kind=action.kind,
        namespace=action.namespace,
        name=_storable(action.name),
        before=action.before,
        after=action.after,
        outcome=outcome,
        detail=_storable(detail),
    )


@contextmanager
def audited(actor: Actor, action: Action) -> Iterator[Progress]:
    """Record that an action begins, run the block, and record how it ended.

    For what happens outside the database: where the begin cannot be stored nothing is done, and a
    begin without end tells of a process that died in between. An exception is recorded as failed
    and goes on; the block may set another outcome.
    """
    record(actor, action, outcome=Outcome.BEGUN)
    progress = Progress(action.before, action.after)
    try:
        yield progress
    except Exception as error:
        record(actor, _ended(action, progress), outcome=Outcome.FAILED, detail=str(error))
        raise
    record(actor, _ended(action, progress), outcome=progress.outcome, detail=progress.detail)


def note_retention(days: float) -> None:
    """Record the retention setting where it is not the one recorded last; 0 keeps everything."""
    last = AuditEntry.objects.filter(verb=RETENTION).first()
    before = float((last.after or {}).get("days", 0)) if last else 0.0
    if before != days:
        action = Action(RETENTION, before={"days": before}, after={"days": days})
        record(SYSTEM, action)


def prune_audit(now: datetime, days: float) -> int:
    """Delete entries older than ``days``, which is itself recorded; 0 deletes none."""
    note_retention(days)
    if not days:
        return 0
    before = now - timedelta(days=days)
    deleted = 0
    while True:
        keys = list(
            AuditEntry.objects.filter(at__lt=before)
            .order_by("pk")
            .values_list("pk", flat=True)[:CHUNK]
        )
        if not keys:
            return deleted
        with transaction.atomic():
            after = {"days": days, "before": before.isoformat(), "entries": len(keys)}
            record(SYSTEM, Action("audit.prune", after=after))
            permit = AuditPruning.objects.create(before=before)
            AuditEntry.objects.filter(pk__in=keys).delete()
            permit.delete()
        deleted += len(keys)


SYSTEM: Final = Actor("hami-web", Source.COMMAND)
"""Our own scheduled work."""


def _ended(action: Action, progress: Progress) -> Action:
    return Action(
        action.verb,
        action.kind,
        action.name,
        action.namespace,
        before=progress.before,
        after=progress.after,
    )


def _storable(text: str) -> str:
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")[:TEXT_MAX]
