"""What the use-cases need of a cluster, as protocols."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from hami_web.cluster.views import NodeView, ObjectMeta, PodView

Annotations = Mapping[str, str | None]
"""Annotations of a merge patch; None removes the key."""


class HasMetadata(Protocol):
    """An object with identity and version."""

    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=HasMetadata)
T_contra = TypeVar("T_contra", bound=HasMetadata, contravariant=True)


@dataclass(frozen=True, slots=True)
class Binding:
    """One write that puts a Pod on a node and annotates it.

    The API server merges ``annotations`` of a Binding into the Pod in the same write that sets
    ``spec.nodeName``, and refuses another UID with 409.
    """

    namespace: str
    name: str
    uid: str
    node: str
    annotations: Mapping[str, str] = field(default_factory=dict)


class ClusterReader(Protocol):
    """Reads single objects from the API server's storage, never from a cache."""

    def get_pod(self, namespace: str, name: str) -> PodView: ...

    def get_node(self, name: str) -> NodeView: ...


class ClusterWriter(Protocol):
    """Writes what the control plane may write; every call raises ClusterError."""

    def bind(self, binding: Binding) -> None: ...

    def annotate_node(self, node: NodeView, annotations: Annotations) -> NodeView:
        """Patch with the node's ``resourceVersion``: Conflict if anyone wrote since."""
        ...

    def annotate_pod(self, pod: PodView, annotations: Annotations) -> None:
        """Patch with the Pod's UID: Conflict if the name belongs to another Pod by now."""
        ...


class Cluster(ClusterReader, ClusterWriter, Protocol):
    """Reads and writes."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list; ``more`` is the token of the next page, empty on the last."""

    items: tuple[T, ...]
    resource_version: str
    more: str


@dataclass(frozen=True, slots=True)
class Changed(Generic[T]):
    """An object was added or modified."""

    item: T


@dataclass(frozen=True, slots=True)
class Removed:
    """An object is gone; only its identity can be relied upon."""

    metadata: ObjectMeta


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Nothing changed up to this version."""

    resource_version: str


class WatchStream(Protocol[T]):
    """An open watch. Iterating raises ClusterError; ``close`` may come from any thread."""

    def __iter__(self) -> Iterator[Changed[T] | Removed | Bookmark]: ...

    def close(self) -> None: ...


class ObjectSource(Protocol[T]):
    """List and watch of one kind."""

    def list_page(self, *, limit: int, more: str) -> Page[T]: ...

    def watch(self, *, resource_version: str, timeout_s: int) -> WatchStream[T]: ...


class ObjectSink(Protocol[T_contra]):
    """Where a reflector puts what it sees."""

    def replace(self, items: Iterable[T_contra], *, listed_at: float) -> None:
        """Take a complete list in one step; it began at ``listed_at`` on the monotonic clock."""
        ...

    def put(self, item: T_contra) -> None: ...

    def remove(self, metadata: ObjectMeta) -> None: ...
