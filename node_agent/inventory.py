"""What the node offers now: written by discovery, read by the device plugin and the publisher."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from hami_web.core.capability import NodeCapability


@dataclass(frozen=True, slots=True)
class GpuProblem:
    """Why a GPU takes no work, in one line; ``subject`` is its UUID, its index or the node.

    ``code`` is one word for conditions and metrics.
    """

    subject: str
    reason: str
    code: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Discovered:
    """One reading of the hardware: what is offered, and why the rest is not."""

    capability: NodeCapability
    problems: tuple[GpuProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class OfferedDevice:
    """One device id of the kubelet; ids carry no identity, their number per GPU is constant."""

    device_id: str
    numa: int
    healthy: bool


@dataclass(frozen=True, slots=True)
class _Version:
    number: int
    devices: tuple[OfferedDevice, ...]


@dataclass(slots=True)
class Inventory:
    """The current offer. Thread-safe; readers can wait for the next change."""

    _changed: threading.Condition = field(default_factory=threading.Condition)
    _version: _Version = field(default_factory=lambda: _Version(0, ()))
    _discovered: Discovered | None = None

    @property
    def discovered(self) -> Discovered | None:
        """The latest reading, None before the first."""
        with self._changed:
            return self._discovered

    def publish(self, discovered: Discovered) -> bool:
        """Offer what was discovered; returns True when it differs from before."""
        devices = tuple(
            OfferedDevice(f"{gpu.uuid}-{number}", gpu.numa, gpu.healthy)
            for gpu in discovered.capability.gpus
            for number in range(gpu.count)
        )
        with self._changed:
            differs = discovered != self._discovered
            self._discovered = discovered
            if devices != self._version.devices:
                self._version = _Version(self._version.number + 1, devices)
                self._changed.notify_all()
            return differs

    def devices(self, known: int, timeout_seconds: float) -> tuple[int, tuple[OfferedDevice, ...]]:
        """The offer and its number, at once if it is not the known one, else after the wait."""
        with self._changed:
            self._changed.wait_for(lambda: self._version.number != known, timeout_seconds)
            return self._version.number, self._version.devices

    def wake(self) -> None:
        """Make every waiting reader look again, for a shutdown."""
        with self._changed:
            self._version = _Version(self._version.number + 1, self._version.devices)
            self._changed.notify_all()
