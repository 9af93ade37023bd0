"""One list, page after page, and which UID each name had."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Generic

from hami_web.cluster.ports import ObjectSource, T
from hami_web.cluster.views import ObjectMeta


class ListingStopped(Exception):
    """The reader is stopping: the rest of the list is not asked for."""


class Uids:
    """UIDs by namespace and name, in little memory."""

    def __init__(self) -> None:
        self._uids: dict[str, dict[str, str]] = {}

    def get(self, metadata: ObjectMeta) -> str | None:
        """The UID that the object's name has, if any."""
        return self._uids.get(metadata.namespace, {}).get(metadata.name)

    def set(self, metadata: ObjectMeta) -> None:
        """The object's name has its UID from now on."""
        named = self._uids.get(metadata.namespace)
        if named is None:
            named = self._uids[metadata.namespace] = {}
        named[metadata.name] = metadata.uid

    def remove(self, metadata: ObjectMeta) -> None:
        """The object's name is free."""
        named = self._uids.get(metadata.namespace, {})
        named.pop(metadata.name, None)
        if not named:
            self._uids.pop(metadata.namespace, None)

    def sharing(self, before: Uids) -> Uids:
        """The same, with the texts of ``before`` where they are equal: others may keep those."""
        shared = Uids()
        for namespace, named in self._uids.items():
            known = before._uids.get(namespace, {})
            same = {name: uid for name, uid in known.items() if named.get(name) == uid}
            shared._uids[namespace] = same | {n: u for n, u in named.items() if n not in same}
        return shared


class Listing(Generic[T]):
    """The items of a complete list, to be read once; each page is asked for when it is needed.

    Reading raises ClusterError, or ListingStopped once ``stopped`` is set.
    """

    def __init__(self, source: ObjectSource[T], page_size: int, stopped: threading.Event) -> None:
        self.uids = Uids()
        self._source = source
        self._page_size = page_size
        self._stopped = stopped
        self._version: str | None = None

    def __iter__(self) -> Iterator[T]:
        more = ""
        while True:
            page = self._source.list_page(limit=self._page_size, more=more)
            for item in page.items:
                self.uids.set(item.metadata)
                yield item
            more = page.more
            if not more:
                self._version = page.resource_version
                return
            if self._stopped.is_set():
                raise ListingStopped

    def version(self) -> str:
        """The list's version; RuntimeError when it was not read to its end."""
        if self._version is None:
            raise RuntimeError("a sink took a list over without reading all of it")
        return self._version
