"""GPUs and MIG instances, worked out from one snapshot of the scheduling state per scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from hami_web.core.annotations import MODE_MIG
from hami_web.metrics import hami_series as hami
from hami_web.metrics import table
from hami_web.metrics.series import Family, single
from hami_web.scheduling.records import ClusterSnapshot, GpuRecord, NodeRecord, Phase

MIB: Final = 1024 * 1024
_Gpus = Sequence[tuple[NodeRecord, GpuRecord]]


class OccupancyCollector:
    """GPUs and MIG instances of the whole cluster, one moment for all series."""

    def __init__(self, snapshot: Callable[[], ClusterSnapshot]) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Family]:
        """HAMi's series of GPUs and instances, and ours."""
        snapshot = self._snapshot()
        gpus = [(node, gpu) for _, node in sorted(snapshot.nodes.items()) for gpu in node.gpus]
        yield from _devices(gpus)
        yield _instances(gpus)
        yield _reservations(gpus)
        yield single(table.ORPHANS, sum(len(gpu.blocked) for _, gpu in gpus))
        yield from _room(gpus)
        yield _closed(snapshot)


def _devices(gpus: _Gpus) -> Iterator[Family]:
    limit, cores = Family(hami.MEMORY_LIMIT), Family(hami.CORE_LIMIT)
    memory, shared = Family(hami.MEMORY_ALLOCATED), Family(hami.SHARED)
    used, share, overview = (
        Family(hami.CORE_ALLOCATED),
        Family(hami.MEMORY_SHARE),
        Family(hami.OVERVIEW),
    )
    for node, record in gpus:
        gpu = record.capability
        device = (str(gpu.index), gpu.model, gpu.uuid, node.name, hami.ZONE)
        used_mib, used_cores = _used(record)
        core_text = str(gpu.core_percent)
        limit.rows.append((device, gpu.memory_mib * MIB))
        cores.rows.append((device, gpu.core_percent))
        memory.rows.append(((core_text, *device), used_mib * MIB))
        shared.rows.append((device, len(record.claims)))
        used.rows.append((device, used_cores))
        share.rows.append((device, used_mib / gpu.memory_mib if gpu.memory_mib else 0))
        whole = (core_text, device[0], str(gpu.memory_mib), *device[1:])
        overview.rows.append((whole, used_mib * MIB))
    yield from (limit, cores, memory, shared, used, share, overview)


def _used(record: GpuRecord) -> tuple[int, int]:
    """Memory in MiB and cores in percent of the claimed profiles."""
    by_name = record.capability.by_name
    memory_mib = cores = 0
    for claim in record.claims:
        profile = by_name.get(claim.profile)
        if profile is not None:
            memory_mib += profile.memory_mib
            cores += profile.core_percent
    return memory_mib, cores


def _instances(gpus: _Gpus) -> Family:
    """HAMi's info series: one per reservation whose whole runtime identity is known.

    Two claims of one identity are one series: a duplicate would cost the whole scrape.
    """
    rows: dict[tuple[str, ...], float] = {}
    for node, record in gpus:
        gpu = record.capability
        if gpu.mode != MODE_MIG:
            continue
        for claim in record.claims:
            identity = claim.identity
            if identity is None:
                continue
            labels = (
                str(identity.compute_instance_id),
                str(gpu.index),
                gpu.uuid,
                str(identity.gpu_instance_id),
                identity.mig_uuid,
                node.name,
                str(claim.placement.size),
                str(claim.placement.start),
                claim.profile,
                hami.ZONE,
            )
            rows[labels] = 1
    return Family(hami.INSTANCES, list(rows.items()))


def _reservations(gpus: _Gpus) -> Family:
    counts = dict.fromkeys(Phase, 0)
    for _node, record in gpus:
        for claim in record.claims:
            counts[claim.phase] += 1
    return Family(table.RESERVATIONS, [((str(phase),), n) for phase, n in counts.items()])


def _room(gpus: _Gpus) -> Iterator[Family]:
    """How many more instances of each profile fit, and how far the free slices are scattered."""
    free, scattered = Family(table.FREE), Family(table.FRAGMENTATION)
    for node, record in gpus:
        if record.capability.mode != MODE_MIG:
            continue
        uuid, fits, state = record.capability.uuid, record.table, record.state
        is_open = record.refusal is None
        largest = 0
        for name, shape in fits.by_name.items():
            count = fits.most(state, shape)
            free.rows.append(((uuid, node.name, name), count if is_open else 0))
            if count:
                largest = max(largest, shape.memory_slices)
        left = record.free_memory_slices
        scattered.rows.append(((uuid, node.name), 1 - largest / left if left else 0))
    yield free
    yield scattered


def _closed(snapshot: ClusterSnapshot) -> Family:
    """Nodes that take no new work, and why."""
    family = Family(table.NODE_CLOSED)
    for name, node in sorted(snapshot.nodes.items()):
        if node.closed is not None:
            family.add(1, name, str(node.closed))
    return family
