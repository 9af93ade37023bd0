"""Numbers that only grow, kept in the database: every process gives the same answer."""

from __future__ import annotations

import json
from collections.abc import Mapping

from django.db.models import F

from hami_web.history.models import Tally
from hami_web.inventory.writing import writing

Key = tuple[str, ...]
"""Name of a tally and its labels."""


def add(amounts: Mapping[Key, float]) -> None:
    """Add to tallies, all or none."""
    with writing():
        for key, amount in sorted(amounts.items()):
            text = json.dumps(key)
            if not Tally.objects.filter(key=text).update(value=F("value") + amount):
                Tally.objects.create(key=text, value=amount)


def keep_latest(key: Key, value: float) -> None:
    """Replace a value by a later one; an earlier one changes nothing."""
    with writing():
        text = json.dumps(key)
        row, made = Tally.objects.get_or_create(key=text, defaults={"value": value})
        if not made and row.value < value:
            row.value = value
            row.save(update_fields=["value"])


def all_tallies() -> dict[Key, float]:
    """Every value by its key; one query."""
    return {
        tuple(json.loads(key)): value for key, value in Tally.objects.values_list("key", "value")
    }
