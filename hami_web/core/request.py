"""What a Pod asks for: MIG devices per container, from its resources and annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from hami_web.core import annotations as keys
from hami_web.core import wire
from hami_web.core.capability import GpuCapability, ProfileCapability
from hami_web.core.errors import InvalidRequest
from hami_web.core.quantity import parse_whole

DEVICES_MAX = 1024
"""Bound on ``nvidia.com/gpu`` of one container, far above what any node holds."""

# The spellings that Go's ParseBool takes, as HAMi reads the annotation with it.
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"", "0", "f", "F", "false", "FALSE", "False"})


@dataclass(frozen=True, slots=True)
class Demand:
    """What one device must offer.

    ``memory_mib`` in MiB; ``memory_percent`` a share of the GPU's memory slices; both None means
    the largest profile. ``core_percent`` is a lower bound. ``profile`` picks one by name.
    """

    memory_mib: int | None = None
    memory_percent: int | None = None
    core_percent: int = 0
    profile: str | None = None

    def candidates(self, gpu: GpuCapability) -> tuple[ProfileCapability, ...]:
        """Profiles of a GPU that satisfy the demand, smallest first.

        A named profile is the only candidate, whatever its attribute. Without a memory demand
        only the largest profile satisfies.
        """
        if self.profile is not None:
            named = gpu.by_name.get(self.profile)
            return () if named is None or not self._fits(named, gpu) else (named,)
        plain = gpu.plain_profiles
        if self.memory_mib is None and self.memory_percent is None:
            plain = plain[-1:]
        return tuple(profile for profile in plain if self._fits(profile, gpu))

    def _fits(self, profile: ProfileCapability, gpu: GpuCapability) -> bool:
        if profile.core_percent < self.core_percent:
            return False
        if self.memory_mib is not None:
            return profile.memory_mib >= self.memory_mib
        if self.memory_percent is not None:
            return profile.memory_slices * 100 >= self.memory_percent * gpu.grid
        return True

    def __str__(self) -> str:
        parts = [
            f"profile {self.profile}" if self.profile else "",
            f"{self.memory_mib} MiB" if self.memory_mib is not None else "",
            f"{self.memory_percent} % of the memory" if self.memory_percent is not None else "",
            f"{self.core_percent} % of the cores" if self.core_percent else "",
        ]
        return ", ".join(part for part in parts if part) or "the largest profile"


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """The part of a container that matters here; resource values as Kubernetes writes them."""

    name: str
    limits: Mapping[str, str | int] = field(default_factory=dict)
    requests: Mapping[str, str | int] = field(default_factory=dict)

    def quantity(self, resource: str) -> str | int | None:
        """The limit, else the request."""
        value = self.limits.get(resource)
        return self.requests.get(resource) if value is None else value


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """Equal devices wanted by one container; ``container_index`` counts init containers first."""

    container_index: int
    container: str
    count: int
    demand: Demand


@dataclass(frozen=True, slots=True)
class GpuSelector:
    """Which GPUs a Pod accepts, from its annotations. Types are matched as lower-case parts."""

    use_types: tuple[str, ...] = ()
    nouse_types: tuple[str, ...] = ()
    use_uuids: frozenset[str] = frozenset()
    nouse_uuids: frozenset[str] = frozenset()

    def accepts_type(self, model: str) -> bool:
        """HAMi's rule: case-insensitive part of the model name."""
        name = model.lower()
        if self.use_types and not any(part in name for part in self.use_types):
            return False
        return not any(part in name for part in self.nouse_types)

    def accepts_uuid(self, uuid: str) -> bool:
        """Exact match; an empty list is no constraint."""
        if self.use_uuids and uuid not in self.use_uuids:
            return False
        return uuid not in self.nouse_uuids


@dataclass(frozen=True, slots=True)
class PodRequest:
    """All MIG devices of a Pod. ``container_count`` is init plus app containers.

    With ``numa_bind`` the devices of one container come from one NUMA node. The policies and
    weights are what the Pod's annotations say; the cluster's policy decides whether it may.
    """

    container_count: int
    containers: tuple[ContainerRequest, ...]
    selector: GpuSelector = GpuSelector()
    accepts_mig: bool = True
    numa_bind: bool = False
    node_policy: str | None = None
    gpu_policy: str | None = None
    weights: str | None = None

    @property
    def devices(self) -> int:
        """Number of devices over all containers; they are held together until the Pod ends."""
        return sum(container.count for container in self.containers)


def parse_pod_request(
    containers: Sequence[ContainerSpec], annotations: Mapping[str, str]
) -> PodRequest:
    """Read a Pod's request; ``containers`` are the init containers, then the app containers.

    Raises :class:`InvalidRequest` naming container, resource, value and what is allowed. A Pod
    without GPU resources gives a request without containers.
    """
    written = [
        (spec.name, tuple(spec.limits.items()), tuple(spec.requests.items())) for spec in containers
    ]
    wishes = tuple([annotations.get(key, "") for key in _WISHES]) if annotations else _NO_WISHES
    return _parse(tuple(written), wishes)


_WISHES: Final = (
    keys.POD_PROFILE,
    keys.POD_MODE,
    keys.POD_USE_GPU_TYPE,
    keys.POD_NOUSE_GPU_TYPE,
    keys.POD_USE_GPU_UUID,
    keys.POD_NOUSE_GPU_UUID,
    keys.POD_NUMA_BIND,
    keys.POD_NODE_POLICY,
    keys.POD_GPU_POLICY,
    keys.POD_DEVICE_WEIGHTS,
)
_NO_WISHES: Final = ("",) * len(_WISHES)
_Values = tuple[tuple[str, str | int], ...]


@lru_cache(maxsize=512)
def _parse(
    written: tuple[tuple[str, _Values, _Values], ...], wishes: tuple[str, ...]
) -> PodRequest:
    """Pods of one template are equal in all of this, and come by the hundred."""
    containers = [ContainerSpec(name, dict(limits), dict(asks)) for name, limits, asks in written]
    annotations = dict(zip(_WISHES, wishes, strict=True))
    profile = annotations[keys.POD_PROFILE].strip() or None
    requests = (_container_request(index, spec, profile) for index, spec in enumerate(containers))
    modes = _words(annotations[keys.POD_MODE])
    return PodRequest(
        container_count=len(containers),
        containers=tuple(request for request in requests if request is not None),
        selector=GpuSelector(
            use_types=_lower_words(annotations[keys.POD_USE_GPU_TYPE]),
            nouse_types=_lower_words(annotations[keys.POD_NOUSE_GPU_TYPE]),
            use_uuids=frozenset(_words(annotations[keys.POD_USE_GPU_UUID])),
            nouse_uuids=frozenset(_words(annotations[keys.POD_NOUSE_GPU_UUID])),
        ),
        accepts_mig=not modes or keys.MODE_MIG in modes,
        numa_bind=_flag(annotations, keys.POD_NUMA_BIND),
        node_policy=annotations[keys.POD_NODE_POLICY].strip() or None,
        gpu_policy=annotations[keys.POD_GPU_POLICY].strip() or None,
        weights=annotations[keys.POD_DEVICE_WEIGHTS].strip() or None,
    )


def _flag(annotations: Mapping[str, str], key: str) -> bool:
    text = annotations.get(key, "").strip()
    if text not in _TRUE and text not in _FALSE:
        raise InvalidRequest(key, text, "true or false")
    return text in _TRUE


def _container_request(
    index: int, spec: ContainerSpec, profile: str | None
) -> ContainerRequest | None:
    count = _quantity(spec, keys.RESOURCE_COUNT, DEVICES_MAX, "GPUs")
    memory = _quantity(spec, keys.RESOURCE_MEMORY, wire.INT32_MAX, "MiB")
    percent = _quantity(spec, keys.RESOURCE_MEMORY_PERCENTAGE, 100, "percent")
    cores = _quantity(spec, keys.RESOURCE_CORES, 100, "percent")
    if not count:
        if memory or percent or cores:
            raise InvalidRequest(
                f"container {spec.name}: {keys.RESOURCE_COUNT}",
                count,
                "1 or more beside a request for GPU memory or cores",
            )
        return None
    demand = Demand(
        memory_mib=memory or None,
        # A memory size wins over a share, as in HAMi; a share of 0 is no demand.
        memory_percent=None if memory else percent or None,
        core_percent=cores or 0,
        profile=profile,
    )
    return ContainerRequest(index, spec.name, count, demand)


def _quantity(spec: ContainerSpec, resource: str, most: int, unit: str) -> int | None:
    value = spec.quantity(resource)
    if value is None:
        return None
    if isinstance(value, str) and len(value) < 10 and value.isascii() and value.isdigit():
        number = int(value)  # by far the most frequent form
        if number <= most:
            return number
    return parse_whole(value, f"container {spec.name}: {resource}", most=most, unit=unit)


def _words(text: str) -> tuple[str, ...]:
    if not text:
        return ()
    return tuple(word for word in (part.strip() for part in text.split(",")) if word)


def _lower_words(text: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _words(text))
