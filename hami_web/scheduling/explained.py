"""Why a Pod was refused, as plain bounded records that can be sent and kept.

Worked out from a :class:`Refused` when somebody asks, not while kube-scheduler waits.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec import Struct

from hami_web.core.placement import Placement
from hami_web.core.request import ContainerRequest
from hami_web.scheduling.explanations import reason_words
from hami_web.scheduling.records import NodeRecord
from hami_web.scheduling.refusal import NearestMiss, NodeRefusal, Refused

NODES_MAX: Final = 16
"""Nodes told in full; the others are counted by reason."""
GPUS_MAX: Final = 16
"""GPUs told of one node, as many as any known board set has."""
DOUBTS_MAX: Final = 3
TEXT_MAX: Final = 512
PAUSE_FACTOR: Final = 20
"""A search for what comes closest is followed by a pause of so many times its length. Over 8,000
GPUs it takes 0.2 s, in which decisions have to share the interpreter."""
KINDS_MAX: Final = 8


class AskedDevices(Struct, frozen=True):
    """What one container asks for; sizes in MiB and percent, None where it does not say."""

    container: str
    count: int
    memory_mib: int | None
    memory_percent: int | None
    core_percent: int
    profile: str | None


class GpuReason(Struct, frozen=True):
    """Why not one device fits on a GPU, and how many of its memory slices are free.

    A GPU whose published capability contradicts itself has no memory slices that are known.
    """

    gpu_uuid: str
    code: str
    free_memory_slices: int | None
    memory_slices: int | None


class NodeReason(Struct, frozen=True):
    """Why a node cannot take the Pod.

    ``code`` is set when no GPU of it takes any work, with the ``doubts`` behind it; otherwise
    ``gpus`` tell, and ``found`` of the ``wanted`` devices fit together on the others. ``text`` is
    what kube-scheduler was told.
    """

    node: str
    code: str | None
    text: str
    found: int
    wanted: int
    gpus: tuple[GpuReason, ...]
    doubts: tuple[str, ...]


class BlockingReservation(Struct, frozen=True):
    """A reservation whose end would help."""

    namespace: str
    name: str
    uid: str
    profile: str
    start: int
    size: int


class SmallerProfile(Struct, frozen=True):
    """A smaller profile that would have fitted."""

    profile: str
    memory_mib: int
    node: str
    gpu_uuid: str
    start: int
    size: int


class Nearest(Struct, frozen=True):
    """What came closest: the fewest reservations, on one GPU, that were in the way.

    ``start`` and ``size`` are None where limits on a profile are in the way, not a placement.
    ``fragmented``: the free memory slices would do if instances could be moved.
    """

    node: str
    gpu_uuid: str
    profile: str
    start: int | None
    size: int | None
    fragmented: bool
    reservations: tuple[BlockingReservation, ...]
    smaller: SmallerProfile | None
    text: str


class ExceededQuota(Struct, frozen=True):
    """The ResourceQuota that does not allow what is asked; limits in MiB and percent."""

    namespace: str
    name: str
    memory_mib: int | None
    core_percent: int | None


class Explanation(Struct, frozen=True):
    """A refusal by nodes and GPUs.

    ``reasons`` counts the refused nodes by code, a node under each of its codes; ``nodes`` tells
    at most ``NODES_MAX`` of the ``nodes_asked``, those first that come closest. ``nearest`` is
    None where no end of reservations would have helped, or, without ``nearest_known``, where
    there was no time to look.
    """

    asked: tuple[AskedDevices, ...]
    nodes_asked: int
    reasons: dict[str, int]
    nodes: tuple[NodeReason, ...]
    quota: ExceededQuota | None
    nearest: Nearest | None
    nearest_known: bool


@dataclass(frozen=True, slots=True)
class Search:
    """What a search for the nearest miss ended in; ``known`` is False where there was none."""

    known: bool
    miss: NearestMiss | None = None


class NearestFinder:
    """Looks for what comes closest, for equal requests of one moment once, and not all the time.

    Safe for threads. ``timer`` is monotonic, in seconds.
    """

    def __init__(self, timer: Callable[[], float]) -> None:
        self._timer = timer
        self._lock = threading.Lock()
        self._not_before = float("-inf")
        # A kind holds the identity of a moment's nodes; the refusal beside it keeps them alive.
        self._kinds: OrderedDict[Hashable, tuple[Refused, Search]] = OrderedDict()

    def find(self, refused: Refused) -> Search:
        """What comes closest for a refused Pod."""
        request = refused.selection.request
        kind = (request, tuple(refused.names), refused.quota, id(refused.nodes))
        with self._lock:
            if kind not in self._kinds:
                began = self._timer()
                if began < self._not_before:
                    return Search(known=False)
                self._kinds[kind] = (refused, Search(known=True, miss=refused.nearest))
                ended = self._timer()
                self._not_before = ended + PAUSE_FACTOR * (ended - began)
                if len(self._kinds) > KINDS_MAX:
                    self._kinds.popitem(last=False)
            return self._kinds[kind][1]


def explain(refused: Refused, search: Search) -> Explanation:
    """The bounded record of a refusal, with what was found for one of its kind."""
    details = refused.details
    words = Counter(word for refusal in details.values() for word in reason_words(refusal))
    return Explanation(
        tuple(_asked(container) for container in refused.selection.request.containers),
        len(details),
        dict(words.most_common()),
        tuple(_node(item, refused.nodes.get(item.node)) for item in _closest(details)),
        _quota(refused),
        None if search.miss is None else _nearest(search.miss),
        search.known,
    )


def shortened(text: str) -> str:
    """At most ``TEXT_MAX`` characters."""
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"


def _asked(container: ContainerRequest) -> AskedDevices:
    demand = container.demand
    return AskedDevices(
        container.container,
        container.count,
        demand.memory_mib,
        demand.memory_percent,
        demand.core_percent,
        demand.profile,
    )


def _closest(details: Mapping[str, NodeRefusal]) -> Iterable[NodeRefusal]:
    """Nodes with the most devices found first, closed ones last, then by name."""
    order = sorted(details.values(), key=lambda r: (-r.found, r.reason is not None, r.node))
    return order[:NODES_MAX]


def _node(refusal: NodeRefusal, record: NodeRecord | None) -> NodeReason:
    gpus = []
    for uuid, code in list(refusal.gpus.items())[:GPUS_MAX]:
        gpu = None if record is None else record.gpu(uuid)
        free = None if gpu is None else gpu.free_memory_slices
        gpus.append(GpuReason(uuid, str(code), free, None if gpu is None else gpu.table.grid))
    return NodeReason(
        refusal.node,
        None if refusal.reason is None else str(refusal.reason),
        shortened(refusal.text),
        refusal.found,
        refusal.wanted,
        tuple(gpus),
        () if record is None else tuple(map(shortened, record.doubts[:DOUBTS_MAX])),
    )


def _quota(refused: Refused) -> ExceededQuota | None:
    quota = refused.quota
    if quota is None:
        return None
    return ExceededQuota(quota.namespace, quota.name, quota.memory_mib, quota.core_percent)


def _nearest(miss: NearestMiss) -> Nearest:
    start, size = _interval(miss.placement)
    smaller = miss.smaller
    return Nearest(
        miss.node,
        miss.gpu_uuid,
        miss.profile,
        start,
        size,
        miss.fragmented,
        tuple(
            BlockingReservation(
                claim.pod.namespace,
                claim.pod.name,
                claim.pod.uid,
                claim.profile,
                claim.placement.start,
                claim.placement.size,
            )
            for claim in miss.claims
        ),
        None
        if smaller is None
        else SmallerProfile(
            smaller.profile,
            smaller.memory_mib,
            smaller.node,
            smaller.gpu_uuid,
            smaller.placement.start,
            smaller.placement.size,
        ),
        shortened(str(miss)),
    )


def _interval(placement: Placement | None) -> tuple[int | None, int | None]:
    return (None, None) if placement is None else (placement.start, placement.size)
