"""The names that HAMi's series had before, for dashboards that still ask for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from hami_web.metrics import hami_series as hami
from hami_web.metrics.series import Family, Kind, Series

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
_INSTANCE: Final = Series(
    "nodeGPUMigInstance",
    Kind.GAUGE,
    "GPU Sharing mode. 0 for hami-core, 1 for mig, 2 for mps",
    ("deviceidx", "deviceuuid", "migname", "nodeid", "zone"),
    hami=True,
)


class _Twin:
    """A present series under its old name and labels; labels without an old name are left out."""

    def __init__(self, present: Series, name: str, labels: Mapping[str, str]) -> None:
        old = sorted(
            (labels[label], at) for at, label in enumerate(present.labels) if label in labels
        )
        names = tuple(label for label, _ in old)
        self.series = Series(name, Kind.GAUGE, present.text, names, hami=True)
        self._order = tuple(at for _, at in old)

    def of(self, family: Family) -> Family:
        order = self._order
        return Family(self.series, [(tuple([v[i] for i in order]), n) for v, n in family.rows])


_TWINS: Final = {
    present.name: _Twin(present, name, labels)
    for present, name, labels in (
        (hami.MEMORY_LIMIT, "GPUDeviceMemoryLimit", _DEVICE),
        (hami.CORE_LIMIT, "GPUDeviceCoreLimit", _DEVICE),
        (hami.MEMORY_ALLOCATED, "GPUDeviceMemoryAllocated", _DEVICE),
        (hami.SHARED, "GPUDeviceSharedNum", _DEVICE),
        (hami.CORE_ALLOCATED, "GPUDeviceCoreAllocated", _DEVICE),
        (hami.OVERVIEW, "nodeGPUOverview", _DEVICE),
        (hami.MEMORY_SHARE, "nodeGPUMemoryPercentage", _NO_TYPE),
        (hami.QUOTA_USED, "QuotaUsed", _QUOTA),
        (hami.CONTAINER_MEMORY, "vGPUMemoryAllocated", _CONTAINER),
        (hami.CONTAINER_CORES, "vGPUCoreAllocated", _CONTAINER),
    )
}
LEGACY: Final = (*(twin.series for twin in _TWINS.values()), _INSTANCE)


def under_old_names(families: Iterable[Family]) -> Iterator[Family]:
    """The same values under the old names and labels, of those that have any."""
    for family in families:
        twin = _TWINS.get(family.series.name)
        if twin is not None:
            yield twin.of(family)
        elif family.series is hami.INSTANCES:
            yield _instances(family)


def _instances(family: Family) -> Family:
    """Profile and GPU instance id are one label there."""
    at: Callable[[str], int] = family.series.labels.index
    index, uuid, node, zone = map(at, ("device_index", "device_uuid", "node", "zone"))
    profile, instance = at("profile"), at("gpu_instance_id")
    rows = [
        ((v[index], v[uuid], f"{v[profile]}-{v[instance]}", v[node], v[zone]), number)
        for v, number in family.rows
    ]
    # Two profiles' instances with one id cannot be told apart by these labels; one is enough.
    return Family(_INSTANCE, list(dict(rows).items()))
