"""HAMi v2.10's scheduler series: names, labels, help texts and scales are HAMi's, not ours.

All but the build info carry the constant label ``zone``. Its ``*_core_*_ratio`` are percent.
"""

from __future__ import annotations

from typing import Final

from hami_web.metrics.series import Kind, Series

ZONE: Final = "vGPU"
_DEVICE: Final = ("device_index", "device_type", "device_uuid", "node", "zone")
_CONTAINER: Final = ("container_index", "device_uuid", "namespace", "node", "pod", "zone")


def _hami(name: str, text: str, *labels: str) -> Series:
    return Series(name, Kind.GAUGE, text, tuple(sorted(labels)), hami=True)


BUILD: Final = _hami(
    "hami_build_info",
    "hami build metadata exposed as labels with a constant value of 1.",
    *("build_date", "compiler", "go_version", "platform", "revision", "version"),
)
MEMORY_LIMIT: Final = _hami(
    "hami_gpu_memory_limit_bytes", "Device memory limit for a certain GPU", *_DEVICE
)
CORE_LIMIT: Final = _hami(
    "hami_gpu_core_limit_ratio", "Device memory core limit for a certain GPU", *_DEVICE
)
MEMORY_ALLOCATED: Final = _hami(
    "hami_gpu_memory_allocated_bytes",
    "Device memory allocated for a certain GPU",
    *("device_cores", *_DEVICE),
)
SHARED: Final = _hami("hami_gpu_shared_count", "Number of containers sharing this GPU", *_DEVICE)
CORE_ALLOCATED: Final = _hami(
    "hami_gpu_core_allocated_ratio", "Device core allocated for a certain GPU", *_DEVICE
)
MEMORY_SHARE: Final = _hami(
    "hami_node_gpu_memory_allocated_ratio",
    "GPU Memory Allocated Percentage on a certain GPU",
    *_DEVICE,
)
OVERVIEW: Final = _hami(
    "hami_node_gpu_overview",
    "GPU overview on a certain node",
    *("device_cores", "device_memory_limit", *_DEVICE),
)
INSTANCES: Final = _hami(
    "hami_node_gpu_mig_instance_info",
    "Realized MIG instance identity and scheduler placement",
    *("compute_instance_id", "device_index", "device_uuid", "gpu_instance_id", "mig_uuid", "node"),
    *("placement_size", "placement_start", "profile", "zone"),
)
CONTAINER_MEMORY: Final = _hami(
    "hami_vgpu_memory_allocated_bytes", "vGPU memory allocated from a container", *_CONTAINER
)
CONTAINER_CORES: Final = _hami(
    "hami_vgpu_core_allocated_ratio", "vGPU core allocated from a container", *_CONTAINER
)
QUOTA_USED: Final = _hami(
    "hami_resource_quota_used",
    "resourcequota usage for a certain device",
    *("limit", "namespace", "quota_name", "zone"),
)
QUOTA_LIMIT: Final = _hami(
    "hami_resource_quota_limit",
    "resourcequota limit for a certain device",
    *("namespace", "quota_name", "zone"),
)
HAMI: Final = (
    *(BUILD, MEMORY_LIMIT, CORE_LIMIT, MEMORY_ALLOCATED, SHARED, CORE_ALLOCATED, MEMORY_SHARE),
    *(OVERVIEW, INSTANCES, CONTAINER_MEMORY, CONTAINER_CORES, QUOTA_USED, QUOTA_LIMIT),
)
