"""Measure the use of memory slices from the mirror."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from hami_web.core.fragmentation import Fragmentation, fragmentation
from hami_web.core.occupancy import Occupancy
from hami_web.core.placement import Placement
from hami_web.core.tables import ProfileTable, TableStore
from hami_web.history.models import Sample
from hami_web.inventory.models import Gpu
from hami_web.inventory.selectors import live_gpus, to_capability
from hami_web.inventory.writing import writing
from hami_web.reservations.models import MigReservation
from hami_web.reservations.selectors import live_by_gpu


def take_sample(now: datetime) -> None:
    """Store the use of every node and of the cluster; twice in one second is once."""
    at = now.replace(microsecond=0)
    with writing():
        Sample.objects.bulk_create(measure(at), ignore_conflicts=True)


def measure(at: datetime) -> list[Sample]:
    """Samples of this moment, not stored: one for each node, one for the cluster.

    Fragmentation counts only GPUs that take new work; use counts all. Four queries.
    """
    tables = TableStore()
    reserved = live_by_gpu()
    totals: defaultdict[str, _Total] = defaultdict(_Total)
    totals[""] = _Total()
    for gpu in live_gpus():
        for scope in ("", gpu.node.name):
            totals[scope].add(gpu, reserved.get(gpu.uuid, ()), tables)
    return [total.sample(at, node) for node, total in sorted(totals.items())]


def cluster_fragmentation() -> Fragmentation:
    """The core's measure over all GPUs that take new work, from the mirror; four queries."""
    tables, reserved, total = TableStore(), live_by_gpu(), _Total()
    for gpu in live_gpus():
        total.add(gpu, reserved.get(gpu.uuid, ()), tables)
    return fragmentation(total.open)


@dataclass(slots=True)
class _Total:
    gpus: int = 0
    memory_slices: int = 0
    reserved: int = 0
    realized: int = 0
    blocked: int = 0
    open: list[tuple[ProfileTable, int]] = field(default_factory=list)

    def add(self, gpu: Gpu, rows: Iterable[MigReservation], tables: TableStore) -> None:
        rows = list(rows)
        blocked = [Placement(item.start, item.size) for item in gpu.blocked.all()]
        taken = Occupancy.of(row.placement for row in rows)
        self.gpus += 1
        self.memory_slices += gpu.memory_slices
        self.reserved += taken.mask.bit_count()
        self.realized += Occupancy.of(r.placement for r in rows if r.mig_uuid).mask.bit_count()
        self.blocked += (Occupancy.of(blocked).mask & ~taken.mask).bit_count()
        if not (gpu.closed or gpu.node.closed or gpu.node.unschedulable):
            table = tables.table_for(to_capability(gpu))
            state = table.state_of(((row.profile, row.placement) for row in rows), blocked)
            self.open.append((table, state))

    def sample(self, at: datetime, node: str) -> Sample:
        return Sample(
            at=at,
            node=node,
            gpus=self.gpus,
            memory_slices=self.memory_slices,
            reserved_memory_slices=self.reserved,
            realized_memory_slices=self.realized,
            blocked_memory_slices=self.blocked,
            fragmentation=fragmentation(self.open).value,
        )
