"""What both sources answer with: the fields of the REST API that the commands show.

Sizes are MiB, ``start`` and ``size`` memory slices. Fields that only the API knows are not here,
so that equal clusters give equal answers from either source.
"""

from __future__ import annotations

from msgspec import Struct


class Node(Struct, kw_only=True):
    """A node; ``closed`` is the code why it takes no new work, or empty."""

    name: str
    closed: str = ""
    doubts: list[str] = []
    unschedulable: bool = False


class Blocked(Struct, kw_only=True):
    """Memory slices that no reservation explains."""

    start: int
    size: int
    reason: str = ""


class Device(Struct, kw_only=True):
    """A GPU as its node publishes it."""

    uuid: str
    node: str
    index: int
    model: str
    memory_mib: int
    memory_slices: int
    numa: int = 0
    mode: str = ""
    healthy: bool = True
    cordoned: bool = False
    closed: str = ""
    profiles: list[str] = []
    blocked: list[Blocked] = []


class Reservation(Struct, kw_only=True):
    """One device of a Pod's container."""

    namespace: str
    pod: str
    pod_uid: str
    node: str
    container_index: int
    device_index: int
    gpu_uuid: str
    profile: str
    start: int
    size: int
    mig_uuid: str = ""
    phase: str = ""


class Interval(Struct, kw_only=True):
    """Memory slices in one state; conflicting reservations overlap."""

    start: int
    size: int
    state: str
    profile: str = ""
    namespace: str = ""
    pod: str = ""
    detail: str = ""


class MappedDevice(Struct, kw_only=True):
    """A GPU of the map."""

    uuid: str
    index: int
    model: str
    memory_slices: int
    closed: str = ""
    intervals: list[Interval] = []


class MappedNode(Struct, kw_only=True):
    """A node of the map."""

    name: str
    closed: str = ""
    unschedulable: bool = False
    gpus: list[MappedDevice] = []


class ClusterMap(Struct, kw_only=True):
    """The map of all GPUs."""

    nodes: list[MappedNode] = []


class Place(Struct, kw_only=True):
    """Where one device goes."""

    container: int
    device: int
    gpu_uuid: str
    profile: str
    start: int
    size: int


class Suggestion(Struct, kw_only=True):
    """A node with a place for each device."""

    node: str
    devices: list[Place]


class ReasonCount(Struct, kw_only=True):
    """Nodes that refuse for one reason."""

    code: str
    nodes: int
    names: list[str] = []


class Blocker(Struct, kw_only=True):
    """A reservation in the way."""

    namespace: str
    pod: str
    profile: str
    start: int
    size: int


class Blockers(Struct, kw_only=True):
    """The fewest reservations in the way, on one GPU."""

    node: str
    gpu_uuid: str
    profile: str | None = None
    start: int | None = None
    size: int | None = None
    exact: bool = True
    reservations: list[Blocker] = []


class Smaller(Struct, kw_only=True):
    """A smaller profile that would fit now."""

    profile: str
    memory_mib: int
    node: str
    gpu_uuid: str
    start: int
    size: int


class Obstacle(Struct, kw_only=True):
    """Why the next Pod fits nowhere."""

    reasons: list[ReasonCount] = []
    blockers: Blockers | None = None
    smaller: Smaller | None = None
    fragmented: bool | None = None


class WhatIf(Struct, kw_only=True):
    """Where Pods would go, or what is in the way."""

    fits: bool
    placed: list[Suggestion] = []
    candidates_total: int = 0
    candidates: list[Suggestion] = []
    obstacle: Obstacle | None = None


class Spot(Struct, kw_only=True):
    """A placement on a GPU."""

    node: str
    gpu_uuid: str
    start: int
    size: int


class Move(Struct, kw_only=True):
    """A Pod that a plan moves; without ``homes`` no other place was found."""

    namespace: str
    pod: str
    node: str
    priority: int | None = None
    homes: list[Spot] = []


class DrainPlan(Struct, kw_only=True):
    """The fewest Pods to move; ``free`` placements are free as it is."""

    profile: str
    count: int
    possible: bool
    free: int
    protected: int
    exact: bool = True
    placements: list[Spot] = []
    moves: list[Move] = []
    commands: list[str] = []


class Nearest(Struct, kw_only=True):
    """What came closest."""

    text: str = ""


class Explanation(Struct, kw_only=True):
    """A refusal by reason; ``nodes_asked`` nodes were tried."""

    nodes_asked: int = 0
    reasons: dict[str, int] = {}
    nearest: Nearest | None = None


class Why(Struct, kw_only=True):
    """What was said of a Pod."""

    said_by: str
    outcome: str
    node: str = ""
    code: str = ""
    message: str = ""
    times: int = 1
    last_at: str = ""
    explanation: Explanation | None = None


class Drift(Struct, kw_only=True):
    """What is not as it should be: ``kind`` is stable, ``detail`` for people."""

    kind: str
    node: str
    gpu_uuid: str = ""
    start: int | None = None
    size: int | None = None
    pod: str = ""
    detail: str = ""
