"""The memory slices of every GPU, as data: four queries, of columns and not of rows as objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from hami_web.access.visibility import UNAVAILABLE, Visibility
from hami_web.inventory.models import LIVE as PRESENT
from hami_web.inventory.models import BlockedInterval, Gpu, Node
from hami_web.planning.layout import BLOCKED, Interval, lay_out
from hami_web.reservations.models import LIVE, MigReservation


class MappedGpu(Struct, frozen=True):
    """One GPU; ``closed`` is the code why it takes no new work, or empty."""

    uuid: str
    index: int
    model: str
    memory_slices: int
    closed: str
    intervals: list[Interval]


class MappedNode(Struct, frozen=True):
    """One node with its GPUs by index."""

    name: str
    closed: str
    unschedulable: bool
    gpus: list[MappedGpu]


def cluster_map(seen: Visibility) -> list[MappedNode]:
    """All live nodes by name, as a caller may see them."""
    claimed, blocked = _claimed(seen), _blocked(seen)
    nodes = {
        key: MappedNode(name, closed, unschedulable, [])
        for key, name, closed, unschedulable in Node.objects.filter(PRESENT).values_list(
            "id", "name", "closed", "unschedulable"
        )
    }
    gpus = Gpu.objects.filter(PRESENT).order_by("index", "uuid")
    columns = ("id", "node_id", "uuid", "index", "model", "memory_slices", "closed")
    for key, node_id, uuid, index, model, grid, closed in gpus.values_list(*columns):
        node = nodes.get(node_id)
        if node is not None:
            found = lay_out(grid, claimed.get(uuid, []), blocked.get(key, ()))
            node.gpus.append(MappedGpu(uuid, index, model, grid, closed, found))
    return list(nodes.values())


def _claimed(seen: Visibility) -> dict[str, list[Interval]]:
    rows: Iterable[tuple[Any, ...]] = (
        MigReservation.objects.filter(LIVE)
        .order_by()
        .values_list(
            *("gpu_uuid", "start", "size", "phase", "profile", "namespace", "pod", "mig_uuid")
        )
    )
    visible: frozenset[str] | None = None
    if not seen.everything:
        rows = list(rows)
        visible = seen.among({row[5] for row in rows})
    found: defaultdict[str, list[Interval]] = defaultdict(list)
    for uuid, start, size, phase, profile, namespace, pod, detail in rows:
        if visible is None or namespace in visible:
            item = Interval(start, size, phase, profile, namespace, pod, detail)
        else:
            item = Interval(start, size, UNAVAILABLE)
        found[uuid].append(item)
    return found


def _blocked(seen: Visibility) -> dict[int, list[Interval]]:
    found: defaultdict[int, list[Interval]] = defaultdict(list)
    rows = BlockedInterval.objects.values_list("gpu_id", "start", "size", "reason")
    for key, start, size, reason in rows:
        detail = reason if seen.everything else ""
        found[key].append(Interval(start, size, BLOCKED, detail=detail))
    return found
