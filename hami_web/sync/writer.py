"""Write one batch of changes to the mirror."""

from __future__ import annotations

from datetime import datetime

from hami_web.history.drift import note_caught_up
from hami_web.history.refusals import note_refusals
from hami_web.history.tenure import FeedTenure
from hami_web.inventory.mirror import forget_nodes, mirror_nodes
from hami_web.inventory.writing import writing
from hami_web.reservations.mirror import mirror_pods, release_pods
from hami_web.sync.changes import Batch


def write_batch(batch: Batch, tenure: FeedTenure, *, seen_at: datetime) -> None:
    """Write what was seen until ``seen_at``, all or nothing; nodes first, reservations need them.

    Raises TenureLost, with nothing written, when another worker feeds the mirror by now.
    """
    with writing():
        tenure.confirm()
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
        # A long batch must not end with a tenure that has run out meanwhile.
        tenure.confirm()
