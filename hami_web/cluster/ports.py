"""What the use-cases need of a cluster, as protocols."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from hami_web.cluster.views import LeaseView, NodeView, ObjectMeta, PodView

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
class LeaseSpec:
    """What a holder writes into a Lease; an empty holder gives it up. Times in RFC 3339."""

    holder: str
    seconds: int
    acquired_at: str
    renewed_at: str
    transitions: int

    def document(self) -> dict[str, object]:
        """As the API has it."""
        return {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.seconds,
            "acquireTime": self.acquired_at,
            "renewTime": self.renewed_at,
            "leaseTransitions": self.transitions,
        }


class LeaseStore(Protocol):
    """Leases by namespace and name; every call raises ClusterError."""

    def get_lease(self, namespace: str, name: str) -> LeaseView: ...

    def create_lease(self, namespace: str, name: str, spec: LeaseSpec) -> LeaseView:
        """Conflict when it exists."""
        ...

    def patch_lease(self, lease: LeaseView, spec: LeaseSpec) -> LeaseView:
        """Write under the Lease's ``resourceVersion``: Conflict if anyone wrote since."""
        ...


@dataclass(frozen=True, slots=True)
class EventDocument:
    """An Event of ``events.k8s.io/v1``, whole or as a merge patch."""

    namespace: str
    name: str
    document: Mapping[str, object]


class EventWriter(Protocol):
    """Writes Events; every call raises ClusterError."""

    def create_event(self, event: EventDocument) -> None: ...

    def patch_event(self, event: EventDocument) -> None: ...


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
        """Take a complete list in one step; it began at ``listed_at`` on the monotonic clock.

        ``items`` can be read once, while the pages arrive, and raise ClusterError when one does
        not: until the last is read nothing of the list counts.
        """
        ...

    def put(self, item: T_contra) -> None: ...

    def remove(self, metadata: ObjectMeta) -> None: ...
