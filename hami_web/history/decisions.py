"""Remember what the extender decided, each set of reasons of a Pod once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Final

from django.db.models import Count, Q

from hami_web.history.models import TEXT_MAX, Decision, Explanation, Outcome, Refusal
from hami_web.inventory.models import KEY_MAX, NAME_MAX
from hami_web.inventory.observed import storable

KEPT_PER_POD: Final = 50
"""Sets of reasons of one Pod; the oldest are forgotten."""
_CHUNK = 500
_CHANGING = (
    *("node", "code", "explanation", "times", "first_at", "last_at", "entry", "entry_times"),
)
_Key = tuple[str, str, str]
"""Pod UID, outcome, digest of the reasons."""


@dataclass(frozen=True, slots=True)
class SeenDecision:
    """An entry of the extender's log: ``entry`` is its id there, ``times`` how often it happened.

    ``explanation`` is JSON, empty where it has none.
    """

    entry: str
    outcome: str
    uid: str
    namespace: str
    name: str
    message: str
    first_at: datetime
    last_at: datetime
    times: int
    node: str = ""
    code: str = ""
    explanation: bytes = b""

    @property
    def key(self) -> _Key:
        """What makes it the same decision, for the same reasons."""
        return (self.uid, self.outcome, sha256(self.message.encode()).hexdigest())


def note_decisions(seen: Sequence[SeenDecision]) -> None:
    """Write decisions, or count them where they are known; inside a transaction.

    What was read before adds nothing, whatever was read since.
    """
    uids = {item.uid for item in seen}
    known = {(row.pod_uid, row.outcome, row.digest): row for row in _rows(sorted(uids))}
    explanations = _explanations(item.explanation for item in seen if item.explanation)
    new: dict[_Key, Decision] = {}
    for item in seen:
        row = known.get(item.key)
        if row is None:
            row = known[item.key] = new[item.key] = _row(item)
        _count(row, item)
        if item.explanation:
            row.explanation = explanations[_digest(item.explanation)]
    changed = [row for key, row in known.items() if key not in new]
    Decision.objects.bulk_update(changed, _CHANGING, batch_size=_CHUNK)
    Decision.objects.bulk_create(new.values(), batch_size=_CHUNK)
    _forget_oldest({row.pod_uid for row in new.values()})


def _rows(uids: Sequence[str]) -> Iterable[Decision]:
    for at in range(0, len(uids), _CHUNK):
        yield from Decision.objects.filter(pod_uid__in=uids[at : at + _CHUNK])


def _row(item: SeenDecision) -> Decision:
    uid, outcome, digest = item.key
    return Decision(
        pod_uid=uid,
        namespace=item.namespace,
        pod=item.name,
        outcome=outcome,
        digest=digest,
        message=storable(item.message, TEXT_MAX),
        times=0,
        first_at=item.first_at,
        last_at=item.last_at,
        entry=item.entry,
        entry_times=0,
    )


def _count(row: Decision, item: SeenDecision) -> None:
    before = row.entry_times if row.entry == item.entry else 0
    row.times += max(item.times - before, 0)
    row.entry, row.entry_times = item.entry, max(item.times, before)
    row.node, row.code = storable(item.node, NAME_MAX), storable(item.code, KEY_MAX)
    row.first_at = min(row.first_at, item.first_at)
    row.last_at = max(row.last_at, item.last_at)


def _explanations(bodies: Iterable[bytes]) -> dict[str, Explanation]:
    wanted = {_digest(body): body for body in bodies}
    found = {row.digest: row for row in Explanation.objects.filter(digest__in=list(wanted))}
    for digest, body in wanted.items():
        if digest not in found:
            found[digest] = Explanation.objects.create(digest=digest, body=json.loads(body))
    return found


def _digest(body: bytes) -> str:
    return sha256(body).hexdigest()


def _forget_oldest(uids: Iterable[str]) -> None:
    kept = Decision.objects.filter(pod_uid__in=list(uids)).order_by()
    counted = kept.values_list("pod_uid").annotate(rows=Count("pk")).filter(rows__gt=KEPT_PER_POD)
    for uid, _ in counted:
        rows = Decision.objects.filter(pod_uid=uid)
        oldest = list(rows.values_list("pk", flat=True)[KEPT_PER_POD:])
        Decision.objects.filter(pk__in=oldest).delete()


@dataclass(frozen=True, slots=True)
class Said:
    """What the extender decided for a Pod, or what kube-scheduler said of it."""

    said_by: str
    pod_uid: str
    outcome: str
    node: str
    code: str
    message: str
    times: int
    first_at: datetime
    last_at: datetime
    explanation: object


def said_of(namespace: str, pod: str, *, limit: int, until: datetime | None = None) -> list[Said]:
    """What is known of a Pod's scheduling, newest first; two queries.

    ``until`` leaves out what was said after it first.
    """
    about = Q(namespace=namespace, pod=pod)
    if until is not None:
        about &= Q(first_at__lte=until)
    decided = Decision.objects.filter(about).select_related("explanation")[:limit]
    refused = Refusal.objects.filter(about)[:limit]
    found = [_said(row) for row in decided] + [_said_by_scheduler(row) for row in refused]
    return sorted(found, key=lambda item: item.last_at, reverse=True)[:limit]


def _said(row: Decision) -> Said:
    body = None if row.explanation is None else row.explanation.body
    return Said(
        "extender", row.pod_uid, row.outcome, row.node, row.code, row.message, row.times,
        row.first_at, row.last_at, body,
    )  # fmt: skip


def _said_by_scheduler(row: Refusal) -> Said:
    return Said(
        "kube-scheduler", row.pod_uid, Outcome.REFUSED.value, "", "", row.message, row.times,
        row.first_at, row.last_at, None,
    )  # fmt: skip
