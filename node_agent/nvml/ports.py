"""What the agent needs of NVML, in values of our own, and the errors it can meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from hami_web.core.placement import Placement


@dataclass(frozen=True, slots=True)
class DriverGpu:
    """One physical GPU. ``mig_current`` and ``mig_pending`` are None where it cannot do MIG."""

    uuid: str
    index: int
    name: str
    memory_mib: int
    minor: int
    pci_bus_id: str
    architecture: int
    mig_current: bool | None
    mig_pending: bool | None

    @property
    def mig_capable(self) -> bool:
        return self.mig_current is not None

    @property
    def mig_active(self) -> bool:
        """MIG is on and stays on: only then can instances be made."""
        return self.mig_current is True and self.mig_pending is True


@dataclass(frozen=True, slots=True)
class EngineCounts:
    """Media and copy engines of one instance."""

    copy: int = 0
    decoder: int = 0
    encoder: int = 0
    jpeg: int = 0
    ofa: int = 0


@dataclass(frozen=True, slots=True)
class DriverProfile:
    """One GPU instance profile of one GPU.

    ``profile_id`` is the number that every call takes (19, 14, 9 …), ``enum`` the one that only
    the profile query takes. ``attribute`` is ``""`` for a plain profile, else its suffix (``+me``).
    ``memory_mib`` is in MiB; ``placements`` are all legal ones, free or not, sorted.
    """

    name: str
    profile_id: int
    enum: int
    attribute: str
    memory_mib: int
    compute_slices: int
    multiprocessors: int
    instance_count: int
    engines: EngineCounts
    placements: tuple[Placement, ...]


@dataclass(frozen=True, slots=True)
class LiveComputeInstance:
    """A compute instance that exists, with the UUID of its MIG device."""

    compute_instance_id: int
    profile_id: int
    mig_uuid: str


@dataclass(frozen=True, slots=True)
class LiveInstance:
    """A GPU instance that exists, with or without compute instances."""

    gpu_uuid: str
    gpu_instance_id: int
    profile_id: int
    placement: Placement
    compute_instances: tuple[LiveComputeInstance, ...]


@dataclass(frozen=True, slots=True)
class DriverProcess:
    """A process on a GPU; the ids are None where the driver does not attribute it."""

    pid: int
    gpu_instance_id: int | None
    compute_instance_id: int | None


@dataclass(frozen=True, slots=True)
class MigModeChange:
    """Outcome of a mode request: the return code was success, this is what really holds.

    ``activation_status`` is the NVML code beside it (0 active, 19 in use, 16 reset required).
    """

    activation_status: int
    current: bool
    pending: bool


class Guest(IntEnum):
    """How the driver sees the GPU: NVML's virtualization modes."""

    BARE_METAL = 0
    PASSTHROUGH = 1
    VGPU = 2
    HOST_VGPU = 3
    HOST_VSGA = 4


class RecoveryAction(IntEnum):
    """What the driver asks people to do so that a GPU works again.

    NVML's numbers (nvml.h, ``nvmlDeviceGpuRecoveryAction_t``); ``OTHER`` stands for later ones.
    """

    OTHER = -1
    NONE = 0
    GPU_RESET = 1
    NODE_REBOOT = 2
    DRAIN_P2P = 3
    DRAIN_AND_RESET = 4
    RECOVER_IMEX_DOMAIN = 5
    BUS_RESET = 6
    SYSTEM_REBOOT = 7


@dataclass(frozen=True, slots=True)
class DriverEvent:
    """An error that the driver reported; the ids are None where it blames the whole GPU.

    ``xid`` is NVIDIA's number of the error, 0 for an uncorrectable memory error (ECC) without one.
    ``recovery`` is no error: what :meth:`MigDriver.recovery_action` says has changed.
    """

    gpu_uuid: str
    xid: int
    gpu_instance_id: int | None
    compute_instance_id: int | None
    recovery: bool = False


class DriverEvents(Protocol):
    """Error events of some GPUs, from one thread."""

    def wait(self, seconds: float) -> DriverEvent | None:
        """The next event, or None when none came in time.

        Raises :class:`DriverGpuLost` when one of the GPUs is lost; it is not said which.
        """

    def close(self) -> None:
        """End the registration; a second call does nothing."""


class DriverError(Exception):
    """An NVML call failed. ``code`` is NVML's number, ``call`` the function that returned it."""

    def __init__(self, code: int, call: str, detail: str = "") -> None:
        self.code = code
        self.call = call
        super().__init__(f"{call}: {detail or 'NVML error'} (code {code})")


class DriverUnavailable(DriverError):
    """No library, no driver, a version mismatch, or the session is closed."""


class DriverNotSupported(DriverError):
    """The GPU, its mode or the library cannot do this."""


class DriverNoPermission(DriverError):
    """The process lacks root or the MIG configuration capability."""


class DriverInvalidArgument(DriverError):
    """An id or a placement is not one the GPU knows."""


class DriverNotFound(DriverError):
    """The object does not exist (any more)."""


class DriverInUse(DriverError):
    """A process, a compute instance or another client still holds the object."""


class DriverInsufficientResources(DriverError):
    """The placement is taken, the capacity is gone, or the instance exists already."""


class DriverGpuLost(DriverError):
    """The GPU fell off the bus or needs a reset; every instance on it is dead."""


class MigDriver(Protocol):
    """One NVML session. Thread-safe; locking across calls is the caller's task.

    Every method raises a :class:`DriverError`; no exception of pynvml leaves it.
    """

    def gpus(self) -> tuple[DriverGpu, ...]:
        """All GPUs in index order; one that is lost is left out of it, see ``lost_indexes``."""

    def lost_indexes(self) -> tuple[int, ...]:
        """Indexes that could not be read in the latest ``gpus()``."""

    def gpu(self, uuid: str) -> DriverGpu:
        """One GPU, read anew. Index and minor number may differ from the last time."""

    def profiles(self, uuid: str) -> tuple[DriverProfile, ...]:
        """Profiles the GPU supports, plain ones and those with an attribute, by enum."""

    def instances(self, uuid: str) -> tuple[LiveInstance, ...]:
        """All GPU instances, of every profile, by placement; also those without a CI."""

    def create_gpu_instance(self, uuid: str, profile_id: int, placement: Placement) -> LiveInstance:
        """Create a GPU instance at exactly this placement, without a compute instance."""

    def create_compute_instance(self, uuid: str, gpu_instance_id: int) -> LiveComputeInstance:
        """Create the compute instance that spans the whole GPU instance."""

    def destroy_compute_instance(
        self, uuid: str, gpu_instance_id: int, compute_instance_id: int
    ) -> None:
        """Destroy one compute instance; NVML refuses while a process uses it."""

    def destroy_gpu_instance(self, uuid: str, gpu_instance_id: int) -> None:
        """Destroy one GPU instance; NVML refuses while it has compute instances."""

    def processes(self, uuid: str) -> tuple[DriverProcess, ...]:
        """Compute (also under MPS) and graphics processes on the GPU and on all its MIG devices."""

    def enable_mig_mode(self, uuid: str) -> MigModeChange:
        """Ask for MIG mode and read back what really holds."""

    def guest(self, uuid: str) -> Guest:
        """Whether the GPU is passed through to a virtual machine, or a share of a host's GPU."""

    def recovery_action(self, uuid: str) -> RecoveryAction | None:
        """What the driver asks to be done about the GPU; None where the driver cannot tell."""

    def events(self, uuids: Sequence[str]) -> DriverEvents:
        """Follow the errors of these GPUs; those that cannot report any are left out."""

    def remaining_capacity(self, uuid: str, profile_id: int) -> int:
        """How many more instances of this profile NVML says would fit."""

    def close(self) -> None:
        """End the session; a second call does nothing."""
