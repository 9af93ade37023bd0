"""What was seen of a Pod with reservations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from hami_web.core.reservation import Reservation


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """A bound Pod that is not over.

    ``reserved_at`` is what its annotation says; None where it says nothing usable. With a
    ``doubt`` its reservations cannot be read, and what is known of it stays. ``unsigned`` says why
    they are not what the scheduler signed, where that is checked. ``owner`` is its controller,
    ``started_at`` when each container began to run, by index, init containers first.
    """

    uid: str
    namespace: str
    name: str
    node: str
    reservations: tuple[Reservation, ...]
    deleting: bool = False
    priority: int = 0
    do_not_evict: bool = False
    reserved_at: datetime | None = None
    doubt: str = ""
    unsigned: str = ""
    owner: str = ""
    started_at: Mapping[int, datetime] = field(default_factory=dict)
