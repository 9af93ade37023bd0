"""The control plane's API client; the only module that imports ``kubernetes``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Generic, cast
from urllib.parse import quote

import msgspec
import urllib3
from kubernetes import client as official
from kubernetes import config as official_config
from kubernetes.config.config_exception import ConfigException

from hami_web.cluster.errors import (
    Conflict,
    InvalidConfiguration,
    MalformedAnswer,
    Rejected,
    error_of,
)
from hami_web.cluster.ports import (
    Annotations,
    Binding,
    Bookmark,
    Changed,
    Page,
    Removed,
    T,
)
from hami_web.cluster.transport import LineStream, Request, Transport
from hami_web.cluster.views import NodeView, ObjectHead, ObjectList, PodView, Status, WatchEvent

FIELD_MANAGER = "hami-scheduler"
MERGE_PATCH = "application/merge-patch+json"
POOL_CONNECTIONS = 64
"""Connections kept; more threads than that would open and close extra ones."""
WATCH_SILENCE_S = 15.0
"""Added to the server's watch timeout: a connection silent for longer is dead."""


class OfficialConnection:
    """Address, TLS and credentials from a kubeconfig or the Pod's ServiceAccount.

    Tokens are read again as they rotate: the official client's hook does it on each use.
    """

    def __init__(self, kubeconfig: Path | None = None) -> None:
        configuration = official.Configuration()
        try:
            if kubeconfig is None:
                official_config.load_incluster_config(configuration)
            else:
                official_config.load_kube_config(
                    str(kubeconfig), client_configuration=configuration, persist_config=False
                )
        except (ConfigException, OSError) as error:
            where = "the Pod's ServiceAccount" if kubeconfig is None else str(kubeconfig)
            raise InvalidConfiguration(f"Kubernetes configuration from {where}: {error}") from error
        configuration.connection_pool_maxsize = POOL_CONNECTIONS
        self._configuration = configuration
        self._client = official.ApiClient(configuration)

    @property
    def host(self) -> str:
        return str(self._configuration.host).rstrip("/")

    @property
    def pool(self) -> urllib3.PoolManager:
        pool = self._client.rest_client.pool_manager
        assert isinstance(pool, urllib3.PoolManager)  # noqa: S101  # narrows an untyped library
        return pool

    def auth_headers(self) -> Mapping[str, str]:
        settings = cast(Mapping[str, Mapping[str, object]], self._configuration.auth_settings())
        return {str(s["key"]): str(s["value"]) for s in settings.values() if s.get("value")}

    def close(self) -> None:
        """Close the pooled connections."""
        self.pool.clear()


class KubernetesClient:
    """Typed calls of the control plane; implements :class:`hami_web.cluster.ports.Cluster`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get_pod(self, namespace: str, name: str) -> PodView:
        return _decode(self._transport.send(Request("GET", _pod_path(namespace, name))), PodView)

    def get_node(self, name: str) -> NodeView:
        return _decode(self._transport.send(Request("GET", _node_path(name))), NodeView)

    def bind(self, binding: Binding) -> None:
        """Bind with annotations. The 2xx body is a Status and of no interest."""
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": binding.name,
                "namespace": binding.namespace,
                "uid": binding.uid,
                "annotations": dict(binding.annotations),
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": binding.node},
        }
        path = f"{_pod_path(binding.namespace, binding.name)}/binding"
        query = {"fieldManager": FIELD_MANAGER}
        self._transport.send(Request("POST", path, query=query, body=body))

    def annotate_node(self, node: NodeView, annotations: Annotations) -> NodeView:
        """Merge-patch annotations under the node's resource version; return the new node."""
        metadata = {
            "resourceVersion": node.metadata.resource_version,
            "annotations": dict(annotations),
        }
        return _decode(self._patch(_node_path(node.name), metadata), NodeView)

    def annotate_pod(self, pod: PodView, annotations: Annotations) -> None:
        """Merge-patch annotations of exactly this Pod."""
        metadata = {"uid": pod.uid, "annotations": dict(annotations)}
        try:
            self._patch(_pod_path(pod.metadata.namespace, pod.metadata.name), metadata)
        except Rejected as error:
            # The API server calls another Pod's UID an attempt to change an immutable field.
            if error.status == 422 and "metadata.uid" in str(error):
                raise Conflict(str(error), error.status) from error
            raise

    def _patch(self, path: str, metadata: Mapping[str, object]) -> bytes:
        return self._transport.send(
            Request(
                "PATCH",
                path,
                query={"fieldManager": FIELD_MANAGER},
                body={"metadata": metadata},
                content_type=MERGE_PATCH,
            )
        )


class Resource(Generic[T]):
    """List and watch of one collection, for example ``/api/v1/pods``."""

    def __init__(self, transport: Transport, path: str, view: type[T]) -> None:
        self._transport = transport
        self._path = path
        self._list = msgspec.json.Decoder(ObjectList[view])  # type: ignore[valid-type]
        self._item = msgspec.json.Decoder(view)

    def list_page(self, *, limit: int, more: str) -> Page[T]:
        """One page of the list, from storage (no ``resourceVersion``: never stale)."""
        query: dict[str, str | int] = {"limit": limit}
        if more:
            query["continue"] = more
        body = self._transport.send(Request("GET", self._path, query=query))
        try:
            found = self._list.decode(body)
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
                "watch": "true",
                "resourceVersion": resource_version,
                "allowWatchBookmarks": "true",
                "timeoutSeconds": timeout_s,
            },
            read_timeout_s=timeout_s + WATCH_SILENCE_S,
        )
        return ResourceWatch(self._path, self._transport.stream(request), self._item)


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


def pods(transport: Transport) -> Resource[PodView]:
    """All Pods of the cluster."""
    return Resource(transport, "/api/v1/pods", PodView)


def nodes(transport: Transport) -> Resource[NodeView]:
    """All nodes."""
    return Resource(transport, "/api/v1/nodes", NodeView)


_EVENT = msgspec.json.Decoder(WatchEvent)
_HEAD = msgspec.json.Decoder(ObjectHead)
_STATUS = msgspec.json.Decoder(Status)


def _decode(body: bytes, view: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=view)
    except msgspec.MsgspecError as error:
        raise MalformedAnswer(f"{view.__name__}: {error}") from error


def _pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"


def _node_path(name: str) -> str:
    return f"/api/v1/nodes/{quote(name, safe='')}"
