"""Which sizes the cluster's GPUs come in, for a request that none of them can satisfy."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from hami_web.core.annotations import MODE_MIG
from hami_web.core.capability import GpuCapability
from hami_web.core.request import ContainerRequest, PodRequest
from hami_web.scheduling.records import ClusterSnapshot

KEPT_S: Final = 5.0
_NEAREST: Final = 4


class GpuModels:
    """One GPU of each kind that the cluster has in MIG mode, looked up at most every few seconds.

    ``snapshot`` None means that the cluster is not known: then nothing is said about it.
    """

    def __init__(
        self,
        snapshot: Callable[[], ClusterSnapshot | None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._snapshot = snapshot
        self._clock = clock
        self._lock = threading.Lock()
        self._models: tuple[GpuCapability, ...] = ()
        self._until = float("-inf")

    def models(self) -> tuple[GpuCapability, ...]:
        """Distinct GPUs; healthy or not, since a Pod may wait for them."""
        with self._lock:
            now = self._clock()
            if now >= self._until:
                self._models = self._look()
                self._until = now + KEPT_S
            return self._models

    def _look(self) -> tuple[GpuCapability, ...]:
        snapshot = self._snapshot()
        if snapshot is None:
            return ()
        found: dict[object, GpuCapability] = {}
        for node in snapshot.nodes.values():
            for gpu in node.gpus:
                capability = gpu.capability
                if capability.mode == MODE_MIG:
                    found.setdefault((capability.model, id(gpu.table)), capability)
        return tuple(found.values())


def unsatisfiable(request: PodRequest, models: Sequence[GpuCapability]) -> str | None:
    """Why no GPU of these could ever hold one of the devices, with the sizes near it; or None."""
    accepted = [gpu for gpu in models if request.selector.accepts_type(gpu.model)]
    for container in request.containers:
        if accepted and not any(container.demand.candidates(gpu) for gpu in accepted):
            return _explain(container, accepted)
    return None


def _explain(container: ContainerRequest, models: Sequence[GpuCapability]) -> str:
    sizes: dict[str, tuple[int, str]] = {}
    for gpu in models:
        for profile in gpu.plain_profiles:
            text = f"{profile.name} with {profile.memory_mib} MiB on {gpu.model}"
            sizes[text] = (profile.memory_mib, text)
    wanted = container.demand.memory_mib
    if wanted is None:
        near = sorted(sizes.values(), reverse=True)
    else:
        near = sorted(sizes.values(), key=lambda size: (abs(size[0] - wanted), size[1]))
    nearest = ", ".join(text for _, text in sorted(near[:_NEAREST]))
    return (
        f"container {container.container}: {container.demand} is not allowed: no GPU of this "
        f"cluster has such a profile; allowed: {nearest or 'nothing'}"
    )
