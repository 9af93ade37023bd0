"""Remember what the scheduler said of Pods that wait."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from hami_web.history.models import Refusal
from hami_web.inventory.observed import storable
from hami_web.inventory.writing import writing

MESSAGE_MAX = 10_000


@dataclass(frozen=True, slots=True)
class ObservedRefusal:
    """A Pod that asks for GPUs and has no node, with the scheduler's words."""

    uid: str
    namespace: str
    name: str
    message: str


def note_refusals(refusals: Iterable[ObservedRefusal], *, seen_at: datetime) -> None:
    """Write each text of a Pod once, and when and how often it was said again after another."""
    with writing():
        for seen in refusals:
            message = storable(seen.message, MESSAGE_MAX)
            digest = sha256(message.encode()).hexdigest()
            newest = Refusal.objects.filter(pod_uid=seen.uid).first()
            if newest is not None and newest.digest == digest:
                continue
            row, made = Refusal.objects.get_or_create(
                pod_uid=seen.uid,
                digest=digest,
                defaults={
                    "namespace": seen.namespace,
                    "pod": seen.name,
                    "message": message,
                    "first_at": seen_at,
                    "last_at": seen_at,
                },
            )
            if not made:
                row.last_at = max(row.last_at, seen_at)
                row.times += 1
                row.save(update_fields=["last_at", "times"])
