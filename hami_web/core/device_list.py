"""Codec of the device lists ``hami.io/vgpu-devices-to-allocate`` and ``…-allocated``.

``UUID,NVIDIA,memory,cores:`` per device, ``;`` after each container, init containers first. A
container without a GPU is an empty segment, so that positions are container indexes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hami_web.core import wire
from hami_web.core.annotations import POD_DEVICES_TO_ALLOCATE, VENDOR
from hami_web.core.errors import MalformedContract


@dataclass(frozen=True, slots=True)
class ListedDevice:
    """One device of a container: memory in MiB and cores in percent, both the profile's."""

    gpu_uuid: str
    memory_mib: int
    core_percent: int
    vendor: str = VENDOR


def encode_devices(containers: Sequence[Sequence[ListedDevice]]) -> str:
    """Write the devices of every container of a Pod."""
    return "".join(
        "".join(f"{d.gpu_uuid},{d.vendor},{d.memory_mib},{d.core_percent}:" for d in devices) + ";"
        for devices in containers
    )


def decode_devices(
    text: str, field: str = POD_DEVICES_TO_ALLOCATE
) -> tuple[tuple[ListedDevice, ...], ...]:
    """Read a device list.

    The last ``;`` closes a container, yet HAMi's own erasing adds empty ones at the end; readers
    must not count containers by it. Raises :class:`MalformedContract`.
    """
    segments = text.split(";")
    if segments and segments[-1] == "":
        segments.pop()
    return tuple(
        tuple(_decode_device(part, f"{field}[{position}]") for part in segment.split(":") if part)
        for position, segment in enumerate(segments)
    )


def is_erased(containers: Sequence[Sequence[ListedDevice]]) -> bool:
    """True when no container waits for a device any more."""
    return not any(containers)


def _decode_device(text: str, where: str) -> ListedDevice:
    parts = text.split(",")
    if len(parts) < 4 or not parts[0]:
        raise MalformedContract(where, text, "UUID,vendor,memory,cores")
    uuid, vendor, memory, cores = parts[:4]
    return ListedDevice(
        uuid, _decimal(memory, f"{where} memory"), _decimal(cores, f"{where} cores"), vendor
    )


def _decimal(text: str, where: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > wire.INT32_MAX:
        raise MalformedContract(where, text, f"a decimal integer in 0…{wire.INT32_MAX}")
    return int(text)
