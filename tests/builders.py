"""Core values for tests, with figures of real boards."""

from __future__ import annotations

from hami_web.core.capability import GpuCapability, ProfileCapability
from hami_web.core.placement import Placement
from hami_web.core.reservation import Reservation, RuntimeIdentity

GPU_A = "GPU-12345678-1234-1234-1234-123456780000"
GPU_B = "GPU-12345678-1234-1234-1234-123456780001"


def profile(
    name: str, memory: int, core: int, compute: int, starts: range | tuple[int, ...], size: int
) -> ProfileCapability:
    placements = tuple(Placement(start, size) for start in starts)
    return ProfileCapability(name, memory, core, compute, placements)


def a100_40gb(uuid: str = GPU_A, index: int = 0, **changes: object) -> GpuCapability:
    """An A100-SXM4-40GB with the default allowlist's profiles."""
    fields: dict[str, object] = {
        "uuid": uuid,
        "index": index,
        "count": 7,
        "memory_mib": 40960,
        "core_percent": 100,
        "model": "NVIDIA A100-SXM4-40GB",
        "numa": 0,
        "mode": "mig",
        "profiles": (
            profile("1g.5gb", 4864, 15, 1, range(7), 1),
            profile("2g.10gb", 9984, 29, 2, (0, 2, 4), 2),
            profile("3g.20gb", 20096, 43, 3, (0, 4), 4),
            profile("7g.40gb", 40320, 100, 7, (0,), 8),
        ),
        "healthy": True,
    }
    return GpuCapability(**(fields | changes))  # type: ignore[arg-type]


def reservation(
    container: int = 0,
    device: int = 0,
    *,
    gpu: str = GPU_A,
    name: str = "2g.10gb",
    start: int = 0,
    size: int = 2,
    identity: RuntimeIdentity | None = None,
) -> Reservation:
    return Reservation(container, device, gpu, name, Placement(start, size), identity)
