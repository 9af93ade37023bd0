"""The names that HAMi's series had before, for dashboards that still ask for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_DEVICE: Final = {
    "node": "nodeid",
    "device_uuid": "deviceuuid",
    "device_index": "deviceidx",
    "device_type": "devicetype",
    "device_cores": "devicecores",
    "device_memory_limit": "devicememorylimit",
    "zone": "zone",
}
_NO_TYPE: Final = {key: value for key, value in _DEVICE.items() if key != "device_type"}
_CONTAINER: Final = {
    "namespace": "podnamespace",
    "node": "nodename",
    "pod": "podname",
    "container_index": "containeridx",
    "device_uuid": "deviceuuid",
    "zone": "zone",
}
_QUOTA: Final = {
    "namespace": "quotanamespace",
    "quota_name": "quotaName",
    "limit": "limit",
    "zone": "zone",
}
_NAMES: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "hami_gpu_memory_limit_bytes": ("GPUDeviceMemoryLimit", _DEVICE),
    "hami_gpu_core_limit_ratio": ("GPUDeviceCoreLimit", _DEVICE),
    "hami_gpu_memory_allocated_bytes": ("GPUDeviceMemoryAllocated", _DEVICE),
    "hami_gpu_shared_count": ("GPUDeviceSharedNum", _DEVICE),
    "hami_gpu_core_allocated_ratio": ("GPUDeviceCoreAllocated", _DEVICE),
    "hami_node_gpu_overview": ("nodeGPUOverview", _DEVICE),
    "hami_node_gpu_memory_allocated_ratio": ("nodeGPUMemoryPercentage", _NO_TYPE),
    "hami_resource_quota_used": ("QuotaUsed", _QUOTA),
    "hami_vgpu_memory_allocated_bytes": ("vGPUMemoryAllocated", _CONTAINER),
    "hami_vgpu_core_allocated_ratio": ("vGPUCoreAllocated", _CONTAINER),
}
_INSTANCES: Final = "hami_node_gpu_mig_instance_info"


class LegacyCollector(Collector):
    """The same values as other collectors', under the old names and labels."""

    def __init__(self, *collectors: Collector) -> None:
        self._collectors = collectors

    def collect(self) -> Iterator[Metric]:
        for collector in self._collectors:
            for family in collector.collect():
                if family.name in _NAMES:
                    yield _renamed(family)
                elif family.name == _INSTANCES:
                    yield _instances(family)

    def describe(self) -> Iterable[Metric]:
        """Nothing at registration."""
        return ()


def _renamed(family: Metric) -> Metric:
    name, labels = _NAMES[family.name]
    samples = [
        ({labels[key]: value for key, value in sample.labels.items() if key in labels}, sample)
        for sample in family.samples
    ]
    names = tuple(samples[0][0]) if samples else ()
    result = GaugeMetricFamily(name, family.documentation, labels=names)
    for found, sample in samples:
        result.add_metric([found[key] for key in names], sample.value)
    return result


def _instances(family: Metric) -> Metric:
    result = GaugeMetricFamily(
        "nodeGPUMigInstance",
        "GPU Sharing mode. 0 for hami-core, 1 for mig, 2 for mps",
        labels=("deviceidx", "deviceuuid", "migname", "nodeid", "zone"),
    )
    for sample in family.samples:
        found = sample.labels
        name = f"{found['profile']}-{found['gpu_instance_id']}"
        values = [found["device_index"], found["device_uuid"], name, found["node"], found["zone"]]
        result.add_metric(values, sample.value)
    return result
