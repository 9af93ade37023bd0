"""GPUs and MIG instances, worked out from one snapshot of the scheduling state per scrape.

HAMi's series keep their names, labels, constant ``zone`` label and 0…100 scale; new ones follow
Prometheus' conventions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hami_web.core.annotations import MODE_MIG
from hami_web.core.capability import GpuCapability
from hami_web.scheduling.records import ClusterSnapshot, GpuRecord, NodeRecord, Phase

ZONE = "vGPU"
MIB = 1024 * 1024


class OccupancyCollector(Collector):
    """GPUs and MIG instances of the whole cluster, one moment for all series."""

    def __init__(self, snapshot: Callable[[], ClusterSnapshot]) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        snapshot = self._snapshot()
        gpus = [(node, gpu) for name, node in sorted(snapshot.nodes.items()) for gpu in node.gpus]
        yield from _limits(gpus)
        yield from _usage(gpus)
        yield _instances(gpus)
        yield _reservations(gpus)
        yield from _free(gpus)
        yield _closed(snapshot)

    def describe(self) -> Iterable[Metric]:
        """Nothing at registration: the state may still be empty."""
        return ()


_Gpus = Sequence[tuple[NodeRecord, GpuRecord]]
_DEVICE = ("device_index", "device_type", "device_uuid", "node", "zone")


def _device(node: NodeRecord, gpu: GpuCapability) -> list[str]:
    return [str(gpu.index), gpu.model, gpu.uuid, node.name, ZONE]


def _limits(gpus: _Gpus) -> Iterator[Metric]:
    memory = GaugeMetricFamily(
        "hami_gpu_memory_limit_bytes", "Device memory limit for a certain GPU", labels=_DEVICE
    )
    cores = GaugeMetricFamily(
        "hami_gpu_core_limit_ratio", "Device memory core limit for a certain GPU", labels=_DEVICE
    )
    for node, record in gpus:
        gpu = record.capability
        memory.add_metric(_device(node, gpu), gpu.memory_mib * MIB)
        cores.add_metric(_device(node, gpu), gpu.core_percent)
    yield memory
    yield cores


def _usage(gpus: _Gpus) -> Iterator[Metric]:
    memory = GaugeMetricFamily(
        "hami_gpu_memory_allocated_bytes",
        "Device memory allocated for a certain GPU",
        labels=("device_cores", *_DEVICE),
    )
    shared = GaugeMetricFamily(
        "hami_gpu_shared_count", "Number of containers sharing this GPU", labels=_DEVICE
    )
    cores = GaugeMetricFamily(
        "hami_gpu_core_allocated_ratio", "Device core allocated for a certain GPU", labels=_DEVICE
    )
    share = GaugeMetricFamily(
        "hami_node_gpu_memory_allocated_ratio",
        "GPU Memory Allocated Percentage on a certain GPU",
        labels=_DEVICE,
    )
    for node, record in gpus:
        gpu = record.capability
        used_mib, used_cores = _used(record)
        memory.add_metric([str(gpu.core_percent), *_device(node, gpu)], used_mib * MIB)
        shared.add_metric(_device(node, gpu), len(record.claims))
        cores.add_metric(_device(node, gpu), used_cores)
        share.add_metric(_device(node, gpu), used_mib / gpu.memory_mib if gpu.memory_mib else 0)
    yield from (memory, shared, cores, share, _overview(gpus))


def _overview(gpus: _Gpus) -> Metric:
    family = GaugeMetricFamily(
        "hami_node_gpu_overview",
        "GPU overview on a certain node",
        labels=("device_cores", "device_memory_limit", *_DEVICE),
    )
    for node, record in gpus:
        gpu = record.capability
        labels = [str(gpu.core_percent), str(gpu.memory_mib), *_device(node, gpu)]
        family.add_metric(labels, _used(record)[0] * MIB)
    return family


def _used(record: GpuRecord) -> tuple[int, int]:
    """Memory in MiB and cores in percent of the claimed profiles."""
    known = [record.capability.by_name.get(claim.profile) for claim in record.claims]
    profiles = [profile for profile in known if profile is not None]
    return sum(p.memory_mib for p in profiles), sum(p.core_percent for p in profiles)


def _instances(gpus: _Gpus) -> Metric:
    """HAMi's info series: one per reservation whose whole runtime identity is known.

    Two claims of one identity are one series: a duplicate would cost the whole scrape.
    """
    family = GaugeMetricFamily(
        "hami_node_gpu_mig_instance_info",
        "Realized MIG instance identity and scheduler placement",
        labels=(
            "compute_instance_id",
            "device_index",
            "device_uuid",
            "gpu_instance_id",
            "mig_uuid",
            "node",
            "placement_size",
            "placement_start",
            "profile",
            "zone",
        ),
    )
    rows: dict[tuple[str, ...], None] = {}
    for node, record in gpus:
        gpu = record.capability
        if gpu.mode != MODE_MIG:
            continue
        for claim in record.claims:
            identity = claim.identity
            if identity is None:
                continue
            row: tuple[str, ...] = (
                str(identity.compute_instance_id),
                str(gpu.index),
                gpu.uuid,
                str(identity.gpu_instance_id),
                identity.mig_uuid,
                node.name,
                str(claim.placement.size),
                str(claim.placement.start),
                claim.profile,
                ZONE,
            )
            rows[row] = None
    for labels in rows:
        family.add_metric(labels, 1)
    return family


def _reservations(gpus: _Gpus) -> Metric:
    family = GaugeMetricFamily(
        "hami_mig_reservations", "Reservations by how far they have come.", labels=("state",)
    )
    counts = dict.fromkeys(Phase, 0)
    for _node, record in gpus:
        for claim in record.claims:
            counts[claim.phase] += 1
    for phase, count in counts.items():
        family.add_metric([str(phase)], count)
    return family


def _free(gpus: _Gpus) -> Iterator[Metric]:
    """How many more instances of each profile fit, and how far the free slices are scattered."""
    free = GaugeMetricFamily(
        "hami_mig_free_placements",
        "Instances of a profile that still fit on a GPU together.",
        labels=("device_uuid", "node", "profile"),
    )
    scattered = GaugeMetricFamily(
        "hami_mig_fragmentation_ratio",
        "Share of a GPU's free memory slices that its largest free placement cannot use, 0 to 1.",
        labels=("device_uuid", "node"),
    )
    for node, record in gpus:
        if record.capability.mode != MODE_MIG:
            continue
        uuid = record.capability.uuid
        largest = 0
        for name, shape in record.table.by_name.items():
            count = 0 if record.refusal else record.table.most(record.state, shape)
            free.add_metric([uuid, node.name, name], count)
            if record.table.best(record.state, shape) is not None:
                largest = max(largest, record.capability.by_name[name].memory_slices)
        left = record.free_memory_slices
        scattered.add_metric([uuid, node.name], 1 - largest / left if left else 0)
    yield free
    yield scattered


def _closed(snapshot: ClusterSnapshot) -> Metric:
    """Nodes that take no new work, and why; GPUs of others that take none for a conflict."""
    family = GaugeMetricFamily(
        "hami_node_closed", "1 for a node that takes no new work.", labels=("node", "reason")
    )
    for name, node in sorted(snapshot.nodes.items()):
        if node.closed is not None:
            family.add_metric([name, str(node.closed)], 1)
    return family
