"""What Pods and namespaces take, under HAMi's names: one series per container and GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hami_web.core.annotations import RESOURCE_CORES, RESOURCE_MEMORY
from hami_web.core.quota import NamespaceQuota, Usage
from hami_web.metrics.occupancy import MIB, ZONE
from hami_web.scheduling.records import Claim, ClusterSnapshot, GpuRecord


class ContainerCollector(Collector):
    """Containers' shares and namespaces' quotas, from one snapshot per scrape."""

    def __init__(
        self,
        snapshot: Callable[[], ClusterSnapshot],
        quotas: Callable[[], Sequence[NamespaceQuota]],
    ) -> None:
        self._snapshot = snapshot
        self._quotas = quotas

    def collect(self) -> Iterator[Metric]:
        containers: dict[tuple[str, ...], Usage] = {}
        namespaces: dict[str, Usage] = {}
        for node, gpu, claim in self._snapshot().claims():
            pod = claim.pod
            usage = _usage(gpu, claim)
            key = (
                str(claim.container_index),
                gpu.capability.uuid,
                pod.namespace,
                node.name,
                pod.name,
                ZONE,
            )
            containers[key] = containers.get(key, Usage()).plus(usage)
            namespaces[pod.namespace] = namespaces.get(pod.namespace, Usage()).plus(usage)
        yield from _containers(containers)
        yield from _quotas(namespaces, self._quotas())

    def describe(self) -> Iterable[Metric]:
        """Nothing at registration."""
        return ()


def _usage(gpu: GpuRecord, claim: Claim) -> Usage:
    """The profile's figures; a profile that is not published any more counts as nothing."""
    profile = gpu.capability.by_name.get(claim.profile)
    return Usage() if profile is None else Usage(profile.memory_mib, profile.core_percent)


def _containers(usages: dict[tuple[str, ...], Usage]) -> Iterator[Metric]:
    labels = ("container_index", "device_uuid", "namespace", "node", "pod", "zone")
    memory = GaugeMetricFamily(
        "hami_vgpu_memory_allocated_bytes", "vGPU memory allocated from a container", labels=labels
    )
    cores = GaugeMetricFamily(
        "hami_vgpu_core_allocated_ratio", "vGPU core allocated from a container", labels=labels
    )
    for key, usage in sorted(usages.items()):
        memory.add_metric(key, usage.memory_mib * MIB)
        cores.add_metric(key, usage.core_percent)
    yield memory
    yield cores


def _quotas(used: dict[str, Usage], quotas: Sequence[NamespaceQuota]) -> Iterator[Metric]:
    """As HAMi: used per namespace with GPU Pods or quota, with the limit as a label, 0 for none."""
    memory_limits, core_limits = _limits(quotas)
    uses = GaugeMetricFamily(
        "hami_resource_quota_used",
        "resourcequota usage for a certain device",
        labels=("limit", "namespace", "quota_name", "zone"),
    )
    limits = GaugeMetricFamily(
        "hami_resource_quota_limit",
        "resourcequota limit for a certain device",
        labels=("namespace", "quota_name", "zone"),
    )
    for namespace in sorted({*used, *memory_limits, *core_limits}):
        usage = used.get(namespace, Usage())
        for name, value, limit in (
            (RESOURCE_CORES, usage.core_percent, core_limits.get(namespace)),
            (RESOURCE_MEMORY, usage.memory_mib, memory_limits.get(namespace)),
        ):
            uses.add_metric([str(limit or 0), namespace, name, ZONE], value)
            if limit is not None:
                limits.add_metric([namespace, name, ZONE], limit)
    yield uses
    yield limits


def _limits(quotas: Sequence[NamespaceQuota]) -> tuple[dict[str, int], dict[str, int]]:
    """The least memory in MiB and cores in percent that the quotas of each namespace allow."""
    memory: dict[str, int] = {}
    cores: dict[str, int] = {}
    for quota in quotas:
        for found, limit in ((memory, quota.memory_mib), (cores, quota.core_percent)):
            if limit is not None:
                found[quota.namespace] = min(limit, found.get(quota.namespace, limit))
    return memory, cores
