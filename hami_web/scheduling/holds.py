"""Holds: choices made at ``/filter`` that no Pod carries yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from hami_web.core.device_list import ListedDevice
from hami_web.core.request import PodRequest
from hami_web.core.reservation import Reservation


class Hold(Struct, frozen=True, gc=False):
    """All devices of one Pod on one node, counted as taken from the moment of the decision.

    ``devices`` has an entry per container, init containers first, for the device lists.
    ``held_at`` is a reading of the state's clock in seconds.
    """

    pod_uid: str
    namespace: str
    name: str
    node: str
    reservations: tuple[Reservation, ...]
    container_count: int
    devices: tuple[tuple[ListedDevice, ...], ...]
    held_at: float
    request_id: str = ""
    """Of the attempt that made the choice, for lines about it."""


@dataclass(slots=True)
class _Entry:
    hold: Hold
    request: PodRequest
    renewed_at: float
    binding: bool = False
    confirmed_at: float | None = None


@dataclass(slots=True)
class HoldBook:
    """The holds by Pod UID, and which of them may expire. Not synchronized."""

    clock: Callable[[], float]
    seconds: float
    _entries: dict[str, _Entry] = field(default_factory=dict)

    def get(self, uid: str) -> Hold | None:
        """The hold of a Pod."""
        entry = self._entries.get(uid)
        return None if entry is None else entry.hold

    def __len__(self) -> int:
        return len(self._entries)

    def is_binding(self, uid: str) -> bool:
        """True from the start of ``/bind`` on: its answer may already be on the way."""
        entry = self._entries.get(uid)
        return entry is not None and (entry.binding or entry.confirmed_at is not None)

    def same_request(self, uid: str, request: PodRequest) -> bool:
        """True when the Pod still asks for what it was given."""
        entry = self._entries.get(uid)
        return entry is not None and entry.request == request

    def put(self, hold: Hold, request: PodRequest) -> None:
        """Keep a new hold; one of the same Pod must have been dropped before."""
        self._entries[hold.pod_uid] = _Entry(hold, request, hold.held_at)

    def renew(self, uid: str) -> None:
        """The Pod was filtered again: its time starts anew."""
        self._entries[uid].renewed_at = self.clock()

    def mark_binding(self, uid: str) -> Hold | None:
        """Keep a hold from expiring while ``/bind`` works on it."""
        entry = self._entries.get(uid)
        if entry is None:
            return None
        entry.binding = True
        return entry.hold

    def confirm(self, uid: str) -> None:
        """The Binding is written; only the watch ends this hold now."""
        entry = self._entries.get(uid)
        if entry is not None:
            entry.confirmed_at = self.clock()

    def drop(self, uid: str) -> Hold | None:
        """Forget a hold."""
        entry = self._entries.pop(uid, None)
        return None if entry is None else entry.hold

    def expired(self) -> list[str]:
        """UIDs whose time is over and on which nobody works."""
        limit = self.clock() - self.seconds
        return [
            uid
            for uid, entry in self._entries.items()
            if not entry.binding and entry.confirmed_at is None and entry.renewed_at <= limit
        ]

    def unseen(self, seconds: float) -> list[Hold]:
        """Those whose Binding was written so long ago and that no watch has shown bound yet."""
        limit = self.clock() - seconds
        return [
            entry.hold
            for entry in self._entries.values()
            if entry.confirmed_at is not None and entry.confirmed_at < limit
        ]

    def last_seen_before(self, moment: float) -> list[str]:
        """UIDs of Pods that were last filtered, and last bound, before a moment."""
        return [
            uid
            for uid, entry in self._entries.items()
            if entry.renewed_at < moment
            and (entry.confirmed_at is None or entry.confirmed_at < moment)
        ]

    def hold_times(self) -> Mapping[str, float]:
        """When each hold was made, by Pod UID."""
        return {uid: entry.hold.held_at for uid, entry in self._entries.items()}
