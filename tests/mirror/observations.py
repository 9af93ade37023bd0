"""What can be seen in a cluster, for tests of the mirror, and the mirror's rows as plain facts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from hami_web.core.blocked import BlockedInterval
from hami_web.core.placement import Placement
from hami_web.core.reservation import Reservation, RuntimeIdentity
from hami_web.inventory import models as inventory
from hami_web.inventory.observed import ObservedGpu, ObservedNode
from hami_web.reservations.models import ContestedMemorySlice, MemorySliceClaim, MigReservation
from hami_web.reservations.observed import ObservedPod
from tests.builders import a100_40gb

START = datetime(2026, 1, 1, tzinfo=UTC)
GPUS = tuple(f"GPU-{number}" for number in range(4))
IDENTITY = RuntimeIdentity("MIG-1", 3, 0)


def moment(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def gpu(uuid: str = GPUS[0], **more: object) -> ObservedGpu:
    known = {name: more.pop(name) for name in ("closed", "cordoned", "blocked") if name in more}
    return ObservedGpu(a100_40gb(uuid, **more), **known)


def node(name: str = "n1", gpus: tuple[ObservedGpu, ...] | None = None, **more) -> ObservedNode:
    return ObservedNode(name, (gpu(),) if gpus is None else gpus, **more)


def pod(uid: str, *reservations: Reservation, **more: object) -> ObservedPod:
    facts = {"namespace": "team", "name": uid, "node": "n1", "reserved_at": None}
    return ObservedPod(uid=uid, reservations=reservations, **(facts | more))


def placed(start: int, size: int = 1, gpu_uuid: str = GPUS[0], device: int = 0, **more):
    name = {1: "1g.5gb", 2: "2g.10gb", 4: "3g.20gb", 8: "7g.40gb"}[size]
    return Reservation(0, device, gpu_uuid, name, Placement(start, size), **more)


def rows_of_nodes() -> list[tuple]:
    """Nodes, GPUs, profiles and blocked intervals that are live."""
    found = []
    for row in inventory.Node.objects.filter(inventory.LIVE):
        gpus = [
            (
                *(g.uuid, g.index, g.model, g.cordoned, g.closed, g.memory_slices, g.healthy),
                tuple((p.name, str(p.placements)) for p in g.profile_set.profiles.all()),
                tuple((b.start, b.size, b.reason) for b in g.blocked.all()),
            )
            for g in row.gpus.filter(inventory.LIVE)
        ]
        found.append((row.name, row.closed, tuple(row.doubts), row.unschedulable, tuple(gpus)))
    return found


def facts_of_nodes(nodes: list[ObservedNode]) -> list[tuple]:
    return [
        (
            *(n.name, n.closed, n.doubts, n.unschedulable),
            tuple(
                (
                    *(g.capability.uuid, g.capability.index, g.capability.model),
                    *(g.cordoned, g.closed, g.capability.grid, g.capability.healthy),
                    tuple(
                        (p.name, str([[q.start, q.size] for q in p.placements]))
                        for p in sorted(g.capability.profiles, key=lambda p: p.order)
                    ),
                    tuple((b.placement.start, b.placement.size, b.reason) for b in g.blocked),
                )
                for g in sorted(n.gpus, key=lambda g: (g.capability.index, g.capability.uuid))
            ),
        )
        for n in sorted(nodes, key=lambda n: n.name)
    ]


def rows_of_pods() -> list[tuple]:
    """Reservations that are live."""
    rows = MigReservation.objects.filter(released_at=None)
    return sorted(
        (r.pod_uid, r.namespace, r.pod, r.node, r.to_domain().key, str(r.to_domain()),
         r.terminating_at is not None)
        for r in rows
    )  # fmt: skip


def facts_of_pods(pods: list[ObservedPod]) -> list[tuple]:
    return sorted(
        (p.uid, p.namespace, p.name, p.node, item.key, str(item), p.deleting)
        for p in pods
        for item in p.reservations
    )


def shares() -> list[tuple[str, int]]:
    """Claimed and contested memory slices together."""
    claims = MemorySliceClaim.objects.values_list("gpu_uuid", "memory_slice")
    contested = ContestedMemorySlice.objects.values_list("gpu_uuid", "memory_slice")
    return sorted([*claims, *contested])


placements = st.sampled_from([(s, 1) for s in range(7)] + [(0, 2), (2, 2), (4, 4), (0, 8)])


@st.composite
def observed_pods(draw: st.DrawFn) -> list[ObservedPod]:
    """A few Pods with up to three devices each; overlaps are allowed, as by hand they may be."""
    uids = draw(st.lists(st.sampled_from("abcdef"), unique=True, max_size=6))
    return [
        pod(
            uid,
            *(
                placed(
                    *draw(placements),
                    draw(st.sampled_from(GPUS)),
                    device,
                    identity=draw(st.sampled_from([None, IDENTITY])),
                )
                for device in range(draw(st.integers(0, 3)))
            ),
            deleting=draw(st.booleans()),
            node=draw(st.sampled_from(["n1", "n2"])),
        )
        for uid in uids
    ]


@st.composite
def observed_nodes(draw: st.DrawFn) -> list[ObservedNode]:
    """Up to three nodes that share four GPUs."""
    names = draw(st.lists(st.sampled_from(["n1", "n2", "n3"]), unique=True, max_size=3))
    homes = {uuid: draw(st.sampled_from([*names, None])) for uuid in GPUS}
    return [
        ObservedNode(
            name,
            tuple(
                draw(_gpus(uuid, index)) for index, uuid in enumerate(GPUS) if homes[uuid] == name
            ),
            closed=draw(st.sampled_from(["", "NodeCapabilityStale"])),
            unschedulable=draw(st.booleans()),
        )
        for name in names
    ]


@st.composite
def _gpus(draw: st.DrawFn, uuid: str, index: int) -> ObservedGpu:
    full = a100_40gb(uuid, index)
    count = draw(st.integers(0, len(full.profiles)))
    blocked = draw(st.sampled_from([(), (BlockedInterval(uuid, Placement(2, 2), "foreign"),)]))
    return ObservedGpu(
        a100_40gb(uuid, index, profiles=full.profiles[:count]),
        closed=draw(st.sampled_from(["", "CardNotHealth"])),
        cordoned=draw(st.booleans()),
        blocked=blocked,
    )
