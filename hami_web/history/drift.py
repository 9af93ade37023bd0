"""Count the corrections of the mirror, each with its cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from hami_web.history import tallies
from hami_web.history.models import Drift, DriftCause, Feed, Reconciliation
from hami_web.inventory.observed import Difference, storable
from hami_web.inventory.writing import writing

FEED = "mirror"
CORRECTIONS = "corrections"
"""Name of the tallies of corrections, by cause, entity and kind."""


def note_caught_up(moment: datetime) -> None:
    """Everything that the feed saw until this moment is written."""
    with writing():
        Feed.objects.update_or_create(name=FEED, defaults={"caught_up_at": moment})


def feed_caught_up_at() -> datetime | None:
    """Until when the feed has written what it saw; None where it never ran."""
    return Feed.objects.filter(name=FEED).values_list("caught_up_at", flat=True).first()


def record_reconciliation(
    run: Reconciliation, differences: Sequence[Difference], *, fed: bool
) -> DriftCause:
    """Store a run and its corrections; ``fed`` says that the feed was up to date with the list."""
    with writing():
        first = not Reconciliation.objects.exists()
        cause = DriftCause.ALTERED if fed else DriftCause.UNWATCHED
        if first:
            cause = DriftCause.FIRST
        run.corrections = len(differences)
        run.save(force_insert=True)
        Drift.objects.bulk_create(
            (
                Drift(
                    reconciliation=run,
                    at=run.began_at,
                    cause=cause,
                    kind=item.kind,
                    entity=item.entity,
                    key=storable(item.key, 1000),
                    detail=storable(item.detail, 1000),
                )
                for item in differences
            ),
            batch_size=500,
        )
        tallies.add(
            Counter(
                (CORRECTIONS, cause.value, item.entity, item.kind.value) for item in differences
            )
        )
    return cause
