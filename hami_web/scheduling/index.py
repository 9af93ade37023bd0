"""Nodes ranked for one request, kept current from the log of changed nodes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, islice
from typing import Final

from hami_web.core.selection import Choice, Planned, Selection
from hami_web.scheduling.records import NodeRecord
from hami_web.scheduling.refusal import NodeRefusal

Entry = tuple[tuple[int, ...], int, str]
"""Rank, the order among equal ranks, name."""

_PROBES: Final = 3
"""Best nodes that are looked up in a long list of names before a set is made of it."""
_FEW: Final = 48
"""So few names are compared by their own ranks at once."""
_DEPTH: Final = 4
"""A fair sample has a name among the first ``_DEPTH`` times the nodes per name, but for one time
in fifty; the front is that deep at least, and mostly twice as deep."""
_FRONT_LEAST: Final = 32


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


class _Order:
    """All entries in order. Those of one rank are a list: a change moves as little as possible."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._by_rank: dict[tuple[int, ...], list[Entry]] = {}
        for entry in sorted(entries):
            self._by_rank.setdefault(entry[0], []).append(entry)
        self._ranks = list(self._by_rank)

    def __iter__(self) -> Iterator[Entry]:
        return chain.from_iterable(map(self._by_rank.__getitem__, self._ranks))

    def add(self, entry: Entry) -> None:
        """One more."""
        equals = self._by_rank.get(entry[0])
        if equals is None:
            equals = self._by_rank[entry[0]] = []
            insort(self._ranks, entry[0])
        insort(equals, entry)

    def remove(self, entry: Entry) -> None:
        """One less; it must be there."""
        rank = entry[0]
        equals = self._by_rank[rank]
        del equals[bisect_left(equals, entry)]
        if not equals:
            del self._by_rank[rank], self._ranks[bisect_left(self._ranks, rank)]


class _Front:
    """All entries up to one of them, by name: so few that many names are soon compared."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = {entry[2]: entry for entry in entries}
        self._names = set(self._entries)
        self._last = entries[-1] if entries else None

    def __len__(self) -> int:
        return len(self._entries)

    def best(self, names: Iterable[str]) -> Entry | None:
        """The best entry with one of the names, if it is in the front."""
        found = self._names.intersection(names)
        return min(map(self._entries.__getitem__, found), default=None)

    def replace(self, name: str, entry: Entry | None) -> None:
        """A node's entry is another now, or none."""
        if entry is not None and self._last is not None and entry <= self._last:
            self._entries[name] = entry
            self._names.add(name)
        elif self._entries.pop(name, None) is not None:
            self._names.remove(name)


class RankIndex:
    """The nodes that can take one request, best first. Not synchronized.

    ``refusals`` keeps what was found out about nodes that cannot, each with the record it is of.
    """

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self._by_name = selection.by_name
        self.refusals: dict[str, tuple[NodeRecord, NodeRefusal]] = {}
        self._entries: dict[str, Entry] = {}
        self._plans: dict[str, Planned] = {}
        self._order = _Order()
        self._front = _Front(())
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
        best: Entry | None = None
        if len(names) > _FEW:
            if len(names) * 4 > len(self._entries):
                for *_, name in islice(self._order, _PROBES):
                    if name in names:
                        return name
            best = self._front_for(len(names)).best(names)
        if best is None:
            best = min(filter(None, map(self._entries.get, names)), default=None)
        return None if best is None else best[2]

    def choice(self, name: str) -> Choice:
        """What the Pod gets on a node that ``best`` named, as planned for its rank."""
        return self.selection.write(self._plans[name])

    def _front_for(self, count: int) -> _Front:
        """The front as deep as so many names need; kept while it is neither short nor long."""
        least = max(_FRONT_LEAST, _DEPTH * len(self._entries) // count)
        if not min(least, len(self._entries)) <= len(self._front) <= 4 * least:
            self._front = _Front(list(islice(self._order, 2 * least)))
        return self._front

    def _rebuild(self, nodes: Mapping[str, NodeRecord]) -> None:
        plans = ((name, self._plan(record)) for name, record in nodes.items())
        self._plans = {name: planned for name, planned in plans if planned is not None}
        self._ranks = {}
        self._entries = {name: self._entry(name, plan) for name, plan in self._plans.items()}
        self._order = _Order(self._entries.values())
        self._front = _Front(())

    def _replace(self, name: str, record: NodeRecord | None) -> None:
        planned = None if record is None else self._plan(record)
        before = self._entries.get(name)
        after = None if planned is None else self._entry(name, planned)
        if planned is not None:
            self._plans[name] = planned
        if before == after:
            return
        if after is not None:
            self._entries[name] = after
        else:
            del self._entries[name], self._plans[name]
        if before is not None:
            self._order.remove(before)
        if after is not None:
            self._order.add(after)
        self._front.replace(name, after)

    def _plan(self, record: NodeRecord) -> Planned | None:
        return self.selection.plan(record.open_gpus) if record.open_gpus else None

    def _entry(self, name: str, planned: Planned) -> Entry:
        # Equal ranks are one object, so that comparing entries gets to the names at once.
        rank = planned[0].rank
        rank = self._ranks.setdefault(rank, rank)
        return (rank, 0 if self._by_name else _mixed(name), name)


def order_among_equals(selection: Selection, name: str) -> int:
    """Which of two nodes of equal rank comes first, before their names decide."""
    return 0 if selection.by_name else _mixed(name)


@lru_cache(maxsize=1 << 16)
def _mixed(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=4).digest(), "big")
