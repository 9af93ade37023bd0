"""What a scheduler writes on a Pod."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hami_web.core import annotations as keys
from hami_web.core.device_list import ListedDevice, encode_devices
from hami_web.core.placement import Placement
from hami_web.core.reservation import Reservation, encode_allocations

NODE = "gpu-n1"
Device = tuple[int, str, int, int]
"""(GPU index, profile, start, size)"""


def limits_of(devices: int) -> dict[str, Any]:
    return {"limits": {"nvidia.com/gpu": str(devices)}} if devices else {}


def reservation_annotations(
    gpus: Sequence[str], containers: Sequence[Sequence[Device]], phase: str = "allocating"
) -> dict[str, str]:
    """The annotations that a scheduler writes with a Binding."""
    listed = encode_devices(
        [[ListedDevice(gpus[gpu], 4864, 15) for gpu, *_ in devices] for devices in containers]
    )
    reserved = [
        Reservation(container, device, gpus[gpu], profile, Placement(start, size))
        for container, devices in enumerate(containers)
        for device, (gpu, profile, start, size) in enumerate(devices)
    ]
    return {
        keys.POD_NODE: NODE,
        keys.POD_DEVICES_TO_ALLOCATE: listed,
        keys.POD_DEVICES_ALLOCATED: listed,
        keys.POD_MIG_ALLOCATIONS: encode_allocations(reserved),
        keys.POD_BIND_PHASE: phase,
    }
