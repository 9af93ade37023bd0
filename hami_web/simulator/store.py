"""Objects with resource versions, and the history that watches read."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from hami_web.simulator import problems
from hami_web.simulator.documents import JsonObject, decode_object, encode, key_of, metadata
from hami_web.simulator.resources import STORED, Resource

EventType = Literal["ADDED", "MODIFIED", "DELETED"]
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One version of one object. ``document`` is shared: read it, never write to it."""

    key: Key
    version: int
    document: JsonObject
    encoded: bytes

    def fresh(self) -> JsonObject:
        """A copy that may be changed."""
        return decode_object(self.encoded)


@dataclass(frozen=True, slots=True)
class Change:
    """One write. ``current`` is the new state, or at a deletion the last one, with its version."""

    type: EventType
    current: StoredObject
    previous: StoredObject | None


@dataclass(slots=True)
class _Shelf:
    """Everything of one kind. ``floor`` is the newest version whose changes were dropped."""

    ready: threading.Condition
    objects: dict[Key, StoredObject] = field(default_factory=dict)
    history: list[Change] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    floor: int = 0


class Store:
    """All objects behind one lock and one counter, as etcd orders its writes.

    ``history_limit`` is the number of changes kept for each kind; a watch from before them is told
    that its version is gone.
    """

    def __init__(self, history_limit: int = 50_000) -> None:
        self._lock = threading.RLock()
        self._version = 1
        self._history_limit = history_limit
        self._shelves = {
            resource.plural: _Shelf(threading.Condition(self._lock)) for resource in STORED
        }

    @property
    def version(self) -> int:
        """The newest resource version."""
        return self._version

    def create(self, resource: Resource, document: JsonObject) -> StoredObject:
        """Add an object; raises 409 AlreadyExists."""
        shelf = self._shelves[resource.plural]
        with self._lock:
            key = key_of(document)
            if key in shelf.objects:
                raise problems.already_exists(resource, key[1])
            return self._write(shelf, "ADDED", key, document)

    def get(self, resource: Resource, key: Key) -> StoredObject:
        """The object as it is now; raises 404."""
        stored = self._shelves[resource.plural].objects.get(key)
        if stored is None:
            raise problems.not_found(resource, key[1])
        return stored

    def listing(self, resource: Resource, namespace: str = "") -> tuple[int, list[StoredObject]]:
        """(resource version, objects by key) of one namespace or, when it is empty, of all."""
        with self._lock:
            version = self._version
            objects = list(self._shelves[resource.plural].objects.values())
        if namespace:
            objects = [stored for stored in objects if stored.key[0] == namespace]
        objects.sort(key=lambda stored: stored.key)
        return version, objects

    def change(
        self, resource: Resource, key: Key, edit: Callable[[JsonObject], JsonObject | None]
    ) -> StoredObject:
        """Replace an object by ``edit(copy of it)``; None removes it.

        Nothing is written when the result equals what is stored. Raises 404, and whatever ``edit``
        raises, which leaves the object as it was.
        """
        shelf = self._shelves[resource.plural]
        with self._lock:
            stored = self.get(resource, key)
            document = edit(stored.fresh())
            if document is None:
                return self._write(shelf, "DELETED", key, stored.fresh())
            metadata(document)["resourceVersion"] = str(stored.version)
            if document == stored.document:
                return stored
            return self._write(shelf, "MODIFIED", key, document)

    def changes_since(self, resource: Resource, version: int) -> list[Change]:
        """Changes newer than ``version``, oldest first; raises 410 when some were dropped."""
        shelf = self._shelves[resource.plural]
        with self._lock:
            if version < shelf.floor:
                raise problems.expired(f"too old resource version: {version} ({shelf.floor})")
            return shelf.history[bisect_right(shelf.versions, version) :]

    def wait(self, resource: Resource, version: int, timeout: float) -> None:
        """Return when the kind has changed since ``version``, or after ``timeout`` seconds."""
        shelf = self._shelves[resource.plural]
        with self._lock:
            if not shelf.versions or shelf.versions[-1] <= version:
                shelf.ready.wait(timeout)

    def wake(self) -> None:
        """Let every waiter look around, such as when the server stops."""
        with self._lock:
            for shelf in self._shelves.values():
                shelf.ready.notify_all()

    def compact(self) -> int:
        """Forget the history up to now, as etcd does every five minutes; returns that version."""
        with self._lock:
            for shelf in self._shelves.values():
                shelf.floor = self._version
                shelf.history.clear()
                shelf.versions.clear()
                shelf.ready.notify_all()
            return self._version

    def _write(
        self, shelf: _Shelf, change: EventType, key: Key, document: JsonObject
    ) -> StoredObject:
        self._version += 1
        metadata(document)["resourceVersion"] = str(self._version)
        stored = StoredObject(key, self._version, document, encode(document))
        previous = shelf.objects.get(key)
        if change == "DELETED":
            del shelf.objects[key]
        else:
            shelf.objects[key] = stored
        shelf.history.append(Change(change, stored, previous))
        shelf.versions.append(self._version)
        if len(shelf.history) > 2 * self._history_limit:
            self._trim(shelf)
        shelf.ready.notify_all()
        return stored

    def _trim(self, shelf: _Shelf) -> None:
        dropped = len(shelf.history) - self._history_limit
        shelf.floor = shelf.versions[dropped - 1]
        del shelf.history[:dropped]
        del shelf.versions[:dropped]
