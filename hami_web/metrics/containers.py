"""What Pods and namespaces take, under HAMi's names: one series per container and GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hami_web.core.annotations import RESOURCE_CORES, RESOURCE_MEMORY
from hami_web.core.quota import NamespaceQuota, Usage
from hami_web.metrics import hami_series as hami
from hami_web.metrics import table
from hami_web.metrics.occupancy import MIB
from hami_web.metrics.series import Family
from hami_web.scheduling.records import Claim, ClusterSnapshot, GpuRecord


class ContainerCollector:
    """Containers' shares and namespaces' quotas, from one snapshot per scrape."""

    def __init__(
        self,
        snapshot: Callable[[], ClusterSnapshot],
        quotas: Callable[[], Sequence[NamespaceQuota]],
    ) -> None:
        self._snapshot = snapshot
        self._quotas = quotas

    def collect(self) -> Iterator[Family]:
        """HAMi's series of containers and of quotas, and whose each instance is."""
        containers: dict[tuple[str, ...], Usage] = {}
        namespaces: dict[str, Usage] = {}
        instances: dict[tuple[str, ...], float] = {}
        for node, gpu, claim in self._snapshot().claims():
            pod = claim.pod
            usage = _usage(gpu, claim)
            key = (
                str(claim.container_index),
                gpu.capability.uuid,
                pod.namespace,
                node.name,
                pod.name,
                hami.ZONE,
            )
            known = containers.get(key)
            containers[key] = usage if known is None else known.plus(usage)
            namespaces[pod.namespace] = namespaces.get(pod.namespace, Usage()).plus(usage)
            if claim.identity is not None:
                instance = str(claim.identity.gpu_instance_id)
                instances[(*key[:2], instance, *key[2:5], claim.profile)] = 1
        yield Family(table.INSTANCE_POD, list(instances.items()))
        yield from _containers(containers)
        yield from _quotas(namespaces, self._quotas())


def _usage(gpu: GpuRecord, claim: Claim) -> Usage:
    """The profile's figures; a profile that is not published any more counts as nothing."""
    profile = gpu.capability.by_name.get(claim.profile)
    return Usage() if profile is None else Usage(profile.memory_mib, profile.core_percent)


def _containers(usages: dict[tuple[str, ...], Usage]) -> Iterator[Family]:
    found = sorted(usages.items(), key=lambda item: item[0])
    yield Family(hami.CONTAINER_MEMORY, [(key, use.memory_mib * MIB) for key, use in found])
    yield Family(hami.CONTAINER_CORES, [(key, use.core_percent) for key, use in found])


def _quotas(used: dict[str, Usage], quotas: Sequence[NamespaceQuota]) -> Iterator[Family]:
    """As HAMi: used per namespace with GPU Pods or quota, with the limit as a label, 0 for none."""
    memory_limits, core_limits = _limits(quotas)
    uses, limits = Family(hami.QUOTA_USED), Family(hami.QUOTA_LIMIT)
    for namespace in sorted({*used, *memory_limits, *core_limits}):
        usage = used.get(namespace, Usage())
        for name, value, limit in (
            (RESOURCE_CORES, usage.core_percent, core_limits.get(namespace)),
            (RESOURCE_MEMORY, usage.memory_mib, memory_limits.get(namespace)),
        ):
            uses.add(value, str(limit or 0), namespace, name, hami.ZONE)
            if limit is not None:
                limits.add(limit, namespace, name, hami.ZONE)
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
