"""List and watch of the collections that we follow, decoded line by line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic
from urllib.parse import quote

import msgspec

from hami_web.cluster.errors import MalformedAnswer, error_of
from hami_web.cluster.listed_pods import ListedPod
from hami_web.cluster.ports import Bookmark, Changed, Page, Removed, T
from hami_web.cluster.transport import LineStream, Request, Transport
from hami_web.cluster.views import (
    LeaseView,
    NodeView,
    ObjectHead,
    ObjectList,
    PodView,
    PodWithProgress,
    QuotaView,
    Status,
    WatchEvent,
)

WATCH_SILENCE_S: Final = 15.0
"""Added to the server's watch timeout: a connection silent for longer is dead."""


class Resource(Generic[T]):
    """List and watch of one collection, for example ``/api/v1/nodes``."""

    def __init__(
        self, transport: Transport, path: str, view: type[T], *, label: str = "", of: str = ""
    ) -> None:
        """``label`` and ``of`` are a label selector and a field selector, empty for all objects."""
        self._transport = transport
        self._path = path
        selectors = {"labelSelector": label, "fieldSelector": of}
        self._query: dict[str, str | int] = {k: text for k, text in selectors.items() if text}
        self._list = msgspec.json.Decoder(ObjectList[view])  # type: ignore[valid-type]
        self._item = msgspec.json.Decoder(view)

    def decode_list(self, body: bytes) -> ObjectList[T]:
        """The objects of one page. Raises MsgspecError."""
        return self._list.decode(body)

    def list_page(self, *, limit: int, more: str) -> Page[T]:
        """One page of the list, from storage (no ``resourceVersion``: never stale)."""
        query = {**self._query, "limit": limit}
        if more:
            query["continue"] = more
        body = self._transport.send(Request("GET", self._path, query=query))
        try:
            found = self.decode_list(body)
        except msgspec.MsgspecError as error:
            raise MalformedAnswer(f"GET {self._path}: {error}") from error
        return Page(
            tuple(found.items or ()), found.metadata.resource_version, found.metadata.more or ""
        )

    def watch(self, *, resource_version: str, timeout_s: int) -> ResourceWatch[T]:
        """Watch from a version on; the server ends it after ``timeout_s`` seconds."""
        request = Request(
            "GET",
            self._path,
            query={
                **self._query,
                "watch": "true",
                "resourceVersion": resource_version,
                "allowWatchBookmarks": "true",
                "timeoutSeconds": timeout_s,
            },
            read_timeout_s=timeout_s + WATCH_SILENCE_S,
        )
        return ResourceWatch(self._path, self._transport.stream(request), self._item)


class PodResource(Resource[PodView]):
    """List and watch of all Pods. Listed Pods that are bound come without their containers."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport, "/api/v1/pods", PodView)

    def decode_list(self, body: bytes) -> ObjectList[PodView]:
        """The Pods of one page. Raises MsgspecError."""
        found = _LISTED_PODS.decode(body)
        return ObjectList(found.metadata, [pod.view() for pod in found.items or ()])


class ResourceWatch(Generic[T]):
    """Decodes watch events line by line."""

    def __init__(self, path: str, lines: LineStream, item: msgspec.json.Decoder[T]) -> None:
        self._path = path
        self._lines = lines
        self._item = item

    def __iter__(self) -> Iterator[Changed[T] | Removed | Bookmark]:
        for line in self._lines:
            try:
                yield self._decode(line)
            except msgspec.MsgspecError as error:
                raise MalformedAnswer(f"watch of {self._path}: {error}") from error

    def close(self) -> None:
        """End the watch from any thread."""
        self._lines.close()

    def _decode(self, line: bytes) -> Changed[T] | Removed | Bookmark:
        event = _EVENT.decode(line)
        match event.type:
            case "ADDED" | "MODIFIED":
                return Changed(self._item.decode(event.object))
            case "DELETED":
                return Removed(_HEAD.decode(event.object).metadata)
            case "BOOKMARK":
                return Bookmark(_HEAD.decode(event.object).metadata.resource_version)
            case "ERROR":
                status = _STATUS.decode(event.object)
                text = f"watch of {self._path}: {status.code} {status.message}"
                raise error_of(status.code or 500, text)
        raise MalformedAnswer(f"watch of {self._path}: event type {event.type!r} is not known")


def pods(transport: Transport) -> PodResource:
    """All Pods of the cluster."""
    return PodResource(transport)


def pods_with_progress(transport: Transport) -> Resource[PodWithProgress]:
    """All Pods of the cluster, with their owners and containers."""
    return Resource(transport, "/api/v1/pods", PodWithProgress)


def nodes(transport: Transport) -> Resource[NodeView]:
    """All nodes."""
    return Resource(transport, "/api/v1/nodes", NodeView)


def resource_quotas(transport: Transport) -> Resource[QuotaView]:
    """All ResourceQuotas of the cluster."""
    return Resource(transport, "/api/v1/resourcequotas", QuotaView)


def leases(transport: Transport, namespace: str, label: str) -> Resource[LeaseView]:
    """The Leases of a namespace that carry a label, as ``key=value``."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, safe='')}/leases"
    return Resource(transport, path, LeaseView, label=label)


_LISTED_PODS = msgspec.json.Decoder(ObjectList[ListedPod])
_EVENT = msgspec.json.Decoder(WatchEvent)
_HEAD = msgspec.json.Decoder(ObjectHead)
_STATUS = msgspec.json.Decoder(Status)
