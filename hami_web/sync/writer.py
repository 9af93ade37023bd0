"""Write one batch of changes to the mirror."""

from __future__ import annotations

from datetime import datetime

from hami_web.history.drift import note_caught_up
from hami_web.history.refusals import note_refusals
from hami_web.inventory.mirror import forget_nodes, mirror_nodes
from hami_web.reservations.mirror import mirror_pods, release_pods
from hami_web.sync.changes import Batch


def write_batch(batch: Batch, *, seen_at: datetime) -> None:
    """Write what was seen until ``seen_at``; nodes first, reservations take figures from them."""
    if batch.nodes:
        mirror_nodes(batch.nodes, seen_at=seen_at, now=seen_at)
    if batch.lost_nodes:
        forget_nodes(batch.lost_nodes, seen_at=seen_at, now=seen_at)
    if batch.ended_pods:
        release_pods(batch.ended_pods, seen_at=seen_at, now=seen_at)
    if batch.pods:
        mirror_pods(batch.pods, seen_at=seen_at, now=seen_at)
    if batch.refusals:
        note_refusals(batch.refusals, seen_at=seen_at)
    note_caught_up(seen_at)
