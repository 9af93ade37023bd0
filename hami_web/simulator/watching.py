"""A watch: the changes after one resource version, as a client that selects sees them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hami_web.simulator import problems
from hami_web.simulator.documents import JsonObject, encode
from hami_web.simulator.requests import Address
from hami_web.simulator.selectors import Predicate
from hami_web.simulator.store import Change, Store, StoredObject
from hami_web.simulator.writes import shown

_LOOK_AROUND = 1.0
"""Seconds between looks at whether the client is still there."""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What one watch asked for. ``since`` 0 means: first everything that exists, as ADDED.

    ``seconds`` is how long the server keeps it, ``bookmark_every`` (None: never) the pause between
    bookmarks, both in seconds.
    """

    since: int
    seconds: float
    bookmark_every: float | None


class WatchStream:
    """Iterates over the encoded events of one watch and ends when its time is over."""

    def __init__(
        self, store: Store, address: Address, predicate: Predicate, options: WatchOptions
    ) -> None:
        self._store = store
        self._address = address
        self._predicate = predicate
        self._options = options
        self._version = options.since
        now = time.monotonic()
        self._deadline = now + options.seconds
        self._next_bookmark = self._bookmark_after(now)

    def events(self, is_over: Callable[[], bool]) -> Iterator[bytes]:
        """Encoded events, newline at the end; ``is_over`` is asked about once a second."""
        if self._options.since == 0:
            yield from self._initial()
        while not is_over():
            try:
                changes = self._store.changes_since(self._address.storage, self._version)
            except problems.ApiProblem as gone:
                yield _event("ERROR", encode(gone.status()))
                return
            for change in changes:
                self._version = change.current.version
                yield from self._seen(change)
            now = time.monotonic()
            if now >= self._next_bookmark:
                yield _event("BOOKMARK", self._bookmark())
                self._next_bookmark = self._bookmark_after(now)
            if now >= self._deadline:
                return
            if not changes:
                pause = min(self._deadline, self._next_bookmark, now + _LOOK_AROUND) - now
                self._store.wait(self._address.storage, self._version, pause)

    def _initial(self) -> Iterator[bytes]:
        version, objects = self._store.listing(self._address.storage, self._address.namespace)
        for stored in objects:
            if self._predicate(stored.document):
                yield _event("ADDED", self._encoded(stored))
        self._version = version

    def _seen(self, change: Change) -> Iterator[bytes]:
        """An object that starts or stops to be selected is added or deleted for this client."""
        namespace = self._address.namespace
        if namespace and change.current.key[0] != namespace:
            return
        was = change.previous is not None and self._predicate(change.previous.document)
        now = change.type != "DELETED" and self._predicate(change.current.document)
        if not was and not now:
            return
        kind = "DELETED" if not now else "MODIFIED" if was else "ADDED"
        shown = change.current
        if kind == "DELETED" and change.type != "DELETED" and change.previous is not None:
            document = change.previous.fresh()
            document["metadata"]["resourceVersion"] = str(change.current.version)
            shown = StoredObject(shown.key, shown.version, document, encode(document))
        yield _event(kind, self._encoded(shown))

    def _encoded(self, stored: StoredObject) -> bytes:
        return encoded_as(self._address, stored)

    def _bookmark(self) -> bytes:
        resource = self._address.resource
        document: JsonObject = {
            "kind": resource.kind,
            "apiVersion": resource.api_version(self._address.version),
            "metadata": {"resourceVersion": str(self._version or 1), "creationTimestamp": None},
        }
        return encode(document)

    def _bookmark_after(self, now: float) -> float:
        """As the real server: every so often, and once shortly before the watch ends."""
        if self._options.bookmark_every is None:
            return float("inf")
        before_end = self._deadline - min(2.0, self._options.seconds / 2)
        regular = now + self._options.bookmark_every
        return min(regular, before_end) if before_end > now else regular


def encoded_as(address: Address, stored: StoredObject) -> bytes:
    """The object in the version that was asked for; the stored bytes where that is the same."""
    if address.resource is address.storage and address.version == address.storage.versions[0]:
        return stored.encoded
    return encode(shown(address, stored))


def _event(kind: str, encoded: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + encoded + b"}\n"
