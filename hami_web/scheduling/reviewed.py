"""The containers of a Pod under review, and where a patch finds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hami_web.cluster.views import Container, PodSpec
from hami_web.core import annotations as keys
from hami_web.core.request import ContainerSpec

DEVICE_DETAILS: Final = (
    keys.RESOURCE_MEMORY,
    keys.RESOURCE_MEMORY_PERCENTAGE,
    keys.RESOURCE_CORES,
)
"""Resources that describe a device; each of them implies that one is wanted."""
GPU_RESOURCES: Final = (keys.RESOURCE_COUNT, *DEVICE_DETAILS)


@dataclass(frozen=True, slots=True)
class ReviewedContainer:
    """A container and where the Pod holds it."""

    path: str
    container: Container
    is_init: bool

    @property
    def spec(self) -> ContainerSpec:
        return self.container.spec()

    @property
    def wants_gpu(self) -> bool:
        return any(self.spec.quantity(resource) is not None for resource in GPU_RESOURCES)

    @property
    def lacks_count(self) -> bool:
        spec = self.spec
        return spec.quantity(keys.RESOURCE_COUNT) is None and any(
            resource in spec.limits for resource in DEVICE_DETAILS
        )

    @property
    def legacy_resources(self) -> tuple[str, ...]:
        """Per-profile resources of fixed geometries that it asks for."""
        spec = self.spec
        names = {*spec.limits, *spec.requests}
        return tuple(sorted(n for n in names if n.startswith(keys.LEGACY_PROFILE_PREFIX)))

    def with_count(self) -> ContainerSpec:
        """The container as it will be with a count of devices."""
        spec = self.spec
        if not self.lacks_count:
            return spec
        limits: Mapping[str, str | int] = {**spec.limits, keys.RESOURCE_COUNT: 1}
        return ContainerSpec(spec.name, limits, spec.requests)


def containers_of(spec: PodSpec) -> list[ReviewedContainer]:
    """Init containers, then app containers, as positions count on the wire."""
    init = [
        ReviewedContainer(f"/spec/initContainers/{position}", container, is_init=True)
        for position, container in enumerate(spec.init_containers or ())
    ]
    return init + [
        ReviewedContainer(f"/spec/containers/{position}", container, is_init=False)
        for position, container in enumerate(spec.containers or ())
    ]
