"""What observed Pods do to records and holds. Not synchronized."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from hami_web.cluster.views import PodView
from hami_web.core.reservation import Reservation
from hami_web.scheduling.holds import HoldBook
from hami_web.scheduling.occupancy import Occupants
from hami_web.scheduling.pods import PodRecord, ends_hold, read_pod


class PodIntake:
    """Takes Pods as they are shown."""

    def __init__(self, occupants: Occupants, holds: HoldBook) -> None:
        self._occupants = occupants
        self._holds = holds

    def observe(self, pod: PodView) -> None:
        """Take one Pod as it is now."""
        record = read_pod(pod)
        if record is not None:
            record = self._with_last_good(record)
            self._holds.drop(pod.uid)
            self._occupants.set_pod(record)
        elif ends_hold(pod):
            self._holds.drop(pod.uid)
            self._occupants.remove_pod(pod.uid)
        elif self._holds.get(pod.uid) is None:
            self._occupants.remove_pod(pod.uid)

    def replace(
        self, records: dict[str, PodRecord], others: Mapping[str, bool], moment: float
    ) -> None:
        """Take a complete list that shows nothing after ``moment``.

        ``others`` are the listed Pods that occupy nothing: True for those that are over.
        """
        for uid, record in records.items():
            if record.doubt:
                records[uid] = self._with_last_good(record)
        lost = self._holds.last_seen_before(moment)
        for uid in list(self._holds.hold_times()):
            if uid in records or others.get(uid, uid in lost):
                self._holds.drop(uid)
            elif (entry := self._occupants.pod(uid)) is not None:
                records[uid] = entry
        self._occupants.replace_pods(records)

    def written(self, uid: str, node: str) -> tuple[Reservation, ...] | None:
        """What is known to be reserved for a Pod on its node; None for nothing.

        From the Pod itself when it could be read last, or from a Binding that was sent. A hold of
        which no Binding was sent is on no Pod.
        """
        record = self._occupants.pod(uid)
        if record is None or record.node != node or not record.claims:
            return None
        if self._holds.get(uid) is not None and not self._holds.is_binding(uid):
            return None
        return tuple(claim.reservation for claim in record.claims)

    def is_bound_here(self, uid: str, node: str) -> bool:
        """Whether a Binding of the Pod to the node was sent, or is being sent, for a hold."""
        hold = self._holds.get(uid)
        return hold is not None and hold.node == node and self._holds.is_binding(uid)

    def _with_last_good(self, record: PodRecord) -> PodRecord:
        """A record that cannot be read keeps the claims that could be read before."""
        if not record.doubt:
            return record
        uid = record.identity.uid
        known = self._occupants.pod(uid)
        if known is None or self.written(uid, record.node) is None:
            return record
        return replace(record, claims=known.claims)
