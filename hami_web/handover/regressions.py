"""The alert about take-overs that fell back: something that was reached does not hold any more."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from hami_web.handover.models import EventKind, NodeHandover, Outcome
from hami_web.history.alerts import settle_alerts
from hami_web.history.conditions import AlertCode, Condition
from hami_web.history.models import Alert
from hami_web.inventory.writing import writing

CODES: Final = frozenset({AlertCode.HANDOVER_REGRESSED})


def refresh_regressions(now: datetime) -> None:
    """Raise or resolve the alerts; two reads, and a write only where there is something."""
    fallen = list(NodeHandover.objects.filter(outcome=Outcome.OPEN).exclude(regressed_from=""))
    if fallen or Alert.objects.filter(code__in=CODES, resolved_at=None).exists():
        with writing():
            settle_alerts(_conditions(fallen), CODES, now=now)


def _conditions(fallen: list[NodeHandover]) -> Iterator[Condition]:
    for row in fallen:
        lost = row.events.filter(kind=EventKind.LOST).last()
        why = lost.text if lost is not None else ""
        text = f"node {row.node} fell back from {row.regressed_from} to {row.step}: {why}"
        yield Condition(AlertCode.HANDOVER_REGRESSED, row.node, text)
