"""Instances of Pods whose annotations no longer say so: the scheduler cannot know of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from hami_web.core.errors import InvalidField
from node_agent.errors import ReservationMismatch, ReservationUntrusted
from node_agent.ownership import InstanceRecord, InstanceSpec, Owner, RecordState, located
from node_agent.planning import pod_claims
from node_agent.pods import ObservedPod
from node_agent.trust import Trust

logger = logging.getLogger(__name__)


def explained_by(pod: ObservedPod, trust: Trust) -> frozenset[tuple[Owner, InstanceSpec]]:
    """What a Pod's annotations reserve, as far as they are the scheduler's."""
    try:
        trust.check(pod)
        return frozenset((claim.owner, claim.spec) for claim in pod_claims(pod))
    except (ReservationUntrusted, ReservationMismatch, InvalidField):
        return frozenset()


class Unexplained:
    """What was found last; safe to read from any thread. ``changed`` is called when that differs.

    A Pod that is over explains nothing and needs not: its instance is reclaimed.
    """

    def __init__(self, trust: Trust, changed: Callable[[], None]) -> None:
        self.found: tuple[InstanceRecord, ...] = ()
        self._trust = trust
        self._changed = changed

    @property
    def is_strict(self) -> bool:
        """True where only signed reservations are realized, and so only those explain anything."""
        return self._trust.is_strict

    def look(self, records: Sequence[InstanceRecord], pods: Sequence[ObservedPod]) -> None:
        """Compare; ``pods`` must be a complete list taken after ``records`` were read."""
        living = {pod.uid: pod for pod in pods if not pod.over}
        explained = {
            uid: explained_by(living[uid], self._trust)
            for uid in {record.owner.pod_uid for record in records}
            if uid in living
        }
        found = tuple(
            record
            for record in records
            if record.state is not RecordState.RECLAIMING
            and (owner := explained.get(record.owner.pod_uid)) is not None
            and (record.owner, record.spec) not in owner
        )
        if found == self.found:
            return
        for record in found:
            if record not in self.found:
                logger.warning(
                    "%s: Pod %s does not say so any more; its memory slices are published as taken",
                    record.spec,
                    record.pod,
                    extra=located(record),
                )
        self.found = found
        self._changed()
