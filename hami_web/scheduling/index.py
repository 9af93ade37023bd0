"""Nodes ranked for one request, kept current from the log of changed nodes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from hami_web.core.selection import Selection
from hami_web.scheduling.records import NodeRecord
from hami_web.scheduling.refusal import NodeRefusal

Entry = tuple[tuple[int, ...], int, str]
"""Rank, the order among equal ranks, name."""

_PROBES: Final = 3
"""Best nodes that are looked up in a long list of names before a set is made of it."""
_FEW: Final = 48
"""So few names are compared by their own ranks at once."""
_DEPTH: Final = 8
"""A fair sample has a name among the first ``_DEPTH`` times the nodes per name, but for one time
in three thousand; and looking up half as many entries costs less than ranking the names."""


class ChangeLog:
    """Names of changed nodes in order, so that every index catches up on its own."""

    def __init__(self, most: int = 1 << 16) -> None:
        self._most = most
        self._names: list[str] = []
        self._dropped = 0

    @property
    def end(self) -> int:
        """Position after the last change."""
        return self._dropped + len(self._names)

    def add(self, name: str) -> None:
        """Note that a node changed."""
        if len(self._names) >= self._most:
            half = self._most // 2
            del self._names[:half]
            self._dropped += half
        self._names.append(name)

    def since(self, position: int) -> Collection[str] | None:
        """Nodes changed since a position, each once; None when that is too long ago."""
        if position < self._dropped:
            return None
        return dict.fromkeys(self._names[position - self._dropped :])


class RankIndex:
    """The nodes that can take one request, best first. Not synchronized.

    ``refusals`` keeps what was found out about nodes that cannot, each with the record it is of.
    """

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self.refusals: dict[str, tuple[NodeRecord, NodeRefusal]] = {}
        self._entries: dict[str, Entry] = {}
        self._order: list[Entry] = []
        self._position = -1
        self._ranks: dict[tuple[int, ...], tuple[int, ...]] = {}

    def refresh(self, nodes: Mapping[str, NodeRecord], log: ChangeLog) -> None:
        """Plan again for the nodes that changed, or for all after a long absence."""
        changed = log.since(self._position) if self._position >= 0 else None
        self._position = log.end
        if changed is None or len(changed) * 4 > len(nodes):
            self._rebuild(nodes)
            return
        for name in changed:
            self._replace(name, nodes.get(name))

    def best(self, names: Sequence[str]) -> str | None:
        """The best node among the names. Costs no planning.

        Of equal ranks the first in an order that mixes the names wins, or by name where the policy
        says so: neighbours by name are often offered together, and would all be equal. So one name
        of a fair sample of the nodes is near the front of the order. Where none is, or the names
        are few, their own ranks are compared.
        """
        if len(names) > _FEW:
            order = self._order
            if len(names) * 4 > len(order):
                for *_, name in order[:_PROBES]:
                    if name in names:
                        return name
            wanted = frozenset(names)
            for entry in order[: 1 + max(_DEPTH * len(order) // len(names), len(names) // 2)]:
                if entry[2] in wanted:
                    return entry[2]
        best = min(filter(None, map(self._entries.get, names)), default=None)
        return None if best is None else best[2]

    def _rebuild(self, nodes: Mapping[str, NodeRecord]) -> None:
        self._entries = {}
        self._ranks = {}
        for name, record in nodes.items():
            entry = self._entry(record)
            if entry is not None:
                self._entries[name] = entry
        self._order = sorted(self._entries.values())

    def _replace(self, name: str, record: NodeRecord | None) -> None:
        before = self._entries.pop(name, None)
        after = None if record is None else self._entry(record)
        if after is not None:
            self._entries[name] = after
        if before == after:
            return
        if before is not None:
            del self._order[bisect_left(self._order, before)]
        if after is not None:
            insort(self._order, after)

    def _entry(self, record: NodeRecord) -> Entry | None:
        if not record.open_gpus:
            return None
        plan = self.selection.plan(record.open_gpus)
        if plan is None:
            return None
        # Equal ranks are one object, so that comparing entries gets to the names at once.
        rank = self._ranks.setdefault(plan.rank, plan.rank)
        return (rank, order_among_equals(self.selection, record.name), record.name)


def order_among_equals(selection: Selection, name: str) -> int:
    """Which of two nodes of equal rank comes first, before their names decide."""
    return 0 if selection.by_name else _mixed(name)


@lru_cache(maxsize=1 << 16)
def _mixed(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=4).digest(), "big")
