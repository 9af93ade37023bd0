"""How list-and-watch goes, of whichever process follows the cluster."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Protocol

from hami_web.metrics import table
from hami_web.metrics.series import Family


class Watch(Protocol):
    """A reflector, as far as it is measured."""

    name: str
    relists: int
    failures: int

    def age_s(self) -> float | None: ...

    def list_age_s(self) -> float | None: ...


class WatchCollector:
    """Silence, lists and failures by resource, of the watches there are when it is asked."""

    def __init__(self, watches: Iterable[Watch]) -> None:
        self._watches = watches

    def collect(self) -> Iterator[Family]:
        """What was not heard or listed yet is left out."""
        silence, listed = Family(table.SILENCE), Family(table.LAST_LIST)
        relists, failures = Family(table.RELISTS), Family(table.FAILURES)
        for watch in self._watches:
            heard_s, listed_s = watch.age_s(), watch.list_age_s()
            if heard_s is not None:
                silence.add(heard_s, watch.name)
            if listed_s is not None:
                listed.add(time.time() - listed_s, watch.name)
            relists.add(watch.relists, watch.name)
            failures.add(watch.failures, watch.name)
        yield from (silence, listed, relists, failures)
