"""What is read of NVML, as values of our own: GPUs, instances, processes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hami_web.core.placement import Placement
from node_agent.nvml import binding
from node_agent.nvml.binding import call_nvml
from node_agent.nvml.codes import NvmlCode
from node_agent.nvml.ports import (
    DriverError,
    DriverGpu,
    DriverInvalidArgument,
    DriverNoPermission,
    DriverNotFound,
    DriverNotSupported,
    DriverProcess,
    Guest,
    LiveComputeInstance,
    LiveInstance,
    RecoveryAction,
)
from node_agent.nvml.profiles import MIB, ReportedProfile, compute_profiles, reported_profiles

logger = logging.getLogger(__name__)

_LISTING_ATTEMPTS = 3
_PROCESS_LIST_ATTEMPTS = 5
_RECOVERY_ACTIONS = frozenset(RecoveryAction)
_MPS_LIST = "nvmlDeviceGetMPSComputeRunningProcesses_v3"
_PROCESS_LISTS = (
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    _MPS_LIST,
)


@dataclass(frozen=True, slots=True)
class FoundInstance:
    """A GPU instance and the MIG device handle of each of its compute instances, in order."""

    instance: LiveInstance
    mig_devices: tuple[Any, ...]


def device_handle(uuid: str) -> Any:
    return call_nvml("nvmlDeviceGetHandleByUUID", uuid)


def gpu_instance_handle(uuid: str, gpu_instance_id: int) -> Any:
    return call_nvml("nvmlDeviceGetGpuInstanceById", device_handle(uuid), gpu_instance_id)


def read_gpu(device: Any) -> DriverGpu:
    current, pending = mig_mode(device)
    return DriverGpu(
        uuid=_text(call_nvml("nvmlDeviceGetUUID", device)),
        index=int(call_nvml("nvmlDeviceGetIndex", device)),
        name=_text(call_nvml("nvmlDeviceGetName", device)),
        memory_mib=_total_memory_mib(device),
        minor=int(call_nvml("nvmlDeviceGetMinorNumber", device)),
        pci_bus_id=_text(call_nvml("nvmlDeviceGetPciInfo", device).busId),
        architecture=int(call_nvml("nvmlDeviceGetArchitecture", device)),
        mig_current=current,
        mig_pending=pending,
    )


def _text(value: str | bytes) -> str:
    """Structure fields, and everything in older versions of pynvml, come as bytes."""
    return value.decode() if isinstance(value, bytes) else value


def mig_mode(device: Any) -> tuple[bool | None, bool | None]:
    """Current and pending; None where the GPU cannot do MIG, which is a fact and no error."""
    try:
        current, pending = call_nvml("nvmlDeviceGetMigMode", device)
    except DriverNotSupported:
        return None, None
    return bool(current), bool(pending)


def guest_of(device: Any) -> Guest:
    """A driver that cannot tell is taken for one on bare metal, as all old ones are."""
    try:
        return Guest(int(call_nvml("nvmlDeviceGetVirtualizationMode", device)))
    except (DriverNotSupported, ValueError):
        return Guest.BARE_METAL


def read_recovery_action(device: Any) -> RecoveryAction | None:
    """None for a driver from before the field, or a GPU without it."""
    try:
        number = binding.field_value(device, binding.FIELD_RECOVERY_ACTION)
    except (DriverNotSupported, DriverInvalidArgument):
        return None
    return RecoveryAction(number) if number in _RECOVERY_ACTIONS else RecoveryAction.OTHER


def _total_memory_mib(device: Any) -> int:
    """The largest profile's memory stands in where the total cannot be had.

    With MIG on it needs privilege; some boards that share memory with the CPU report none.
    """
    try:
        return int(call_nvml("nvmlDeviceGetMemoryInfo", device).total) // MIB
    except (DriverNoPermission, DriverNotSupported):
        return max((each.memory_mib for each in reported_profiles(device)), default=0)


def find_instances(uuid: str) -> tuple[FoundInstance, ...]:
    """A complete listing, by placement; one that changes while it is read is read again."""
    device = device_handle(uuid)
    if not mig_mode(device)[0]:
        return ()
    for _ in range(_LISTING_ATTEMPTS - 1):
        try:
            return _listing(uuid, device)
        except (DriverInvalidArgument, DriverNotFound) as error:
            logger.info("the instances of %s changed while they were read: %s", uuid, error)
    return _listing(uuid, device)


def _listing(uuid: str, device: Any) -> tuple[FoundInstance, ...]:
    """Over all profiles, not over MIG handles: those miss an instance without a CI."""
    found: dict[int, FoundInstance] = {}
    for profile in reported_profiles(device):
        for handle in _handles(device, profile):
            bare = bare_instance(uuid, handle)
            if bare.gpu_instance_id not in found:
                found[bare.gpu_instance_id] = _with_compute_instances(bare, handle)
    return tuple(sorted(found.values(), key=lambda each: each.instance.placement))


def _handles(device: Any, profile: ReportedProfile) -> tuple[Any, ...]:
    try:
        return binding.gpu_instance_handles(device, profile.profile_id, profile.instance_count)
    except DriverNotSupported:
        # The mode went off since it was read: nothing can exist any more.
        if mig_mode(device)[0]:
            raise
        return ()


def bare_instance(uuid: str, handle: Any) -> LiveInstance:
    """The GPU instance of a handle, its compute instances not looked at."""
    info = call_nvml("nvmlGpuInstanceGetInfo", handle)
    placement = Placement(int(info.placement.start), int(info.placement.size))
    return LiveInstance(uuid, int(info.id), int(info.profileId), placement, ())


def _with_compute_instances(bare: LiveInstance, handle: Any) -> FoundInstance:
    found: dict[int, tuple[LiveComputeInstance, Any]] = {}
    for profile in compute_profiles(handle):
        for each in binding.compute_instance_handles(
            handle, profile.profile_id, profile.instance_count
        ):
            compute, mig_device = read_compute_instance(each)
            found[compute.compute_instance_id] = (compute, mig_device)
    ordered = [found[number] for number in sorted(found)]
    computes = tuple(compute for compute, _ in ordered)
    instance = LiveInstance(
        bare.gpu_uuid, bare.gpu_instance_id, bare.profile_id, bare.placement, computes
    )
    return FoundInstance(instance, tuple(mig_device for _, mig_device in ordered))


def read_compute_instance(handle: Any) -> tuple[LiveComputeInstance, Any]:
    """With its MIG device handle, which gives the UUID: cheaper than a scan of all devices."""
    info = call_nvml("nvmlComputeInstanceGetInfo_v2", handle)
    uuid = _text(call_nvml("nvmlDeviceGetUUID", info.device))
    return LiveComputeInstance(int(info.id), int(info.profileId), uuid), info.device


def multiprocessors_of(device: Any, profile_id: int) -> int:
    for profile in reported_profiles(device):
        if profile.profile_id == profile_id:
            return profile.multiprocessors
    raise DriverNotSupported(
        NvmlCode.NOT_SUPPORTED,
        "nvmlDeviceGetGpuInstanceProfileInfo",
        f"profile {profile_id} of an existing GPU instance is not among the supported ones",
    )


def read_processes(uuid: str) -> tuple[DriverProcess, ...]:
    """Of the GPU and of each MIG device: neither list alone is sure to be complete.

    When an instance vanishes while it is read, all is read again: no list is taken for empty
    because it could not be had.
    """
    for _ in range(_LISTING_ATTEMPTS - 1):
        try:
            return _all_processes(uuid)
        except (DriverInvalidArgument, DriverNotFound) as error:
            logger.info("the instances of %s changed while they were read: %s", uuid, error)
    return _all_processes(uuid)


def _all_processes(uuid: str) -> tuple[DriverProcess, ...]:
    found = set(_device_processes(device_handle(uuid), None, None))
    for each in find_instances(uuid):
        gi_id = each.instance.gpu_instance_id
        computes = each.instance.compute_instances
        for compute, mig_device in zip(computes, each.mig_devices, strict=True):
            found.update(_device_processes(mig_device, gi_id, compute.compute_instance_id))
    return tuple(sorted(found, key=_order))


def _device_processes(device: Any, gi_id: int | None, ci_id: int | None) -> Iterator[DriverProcess]:
    """The ids given stand in where the driver does not attribute a process."""
    for function in _PROCESS_LISTS:
        for process in _process_list(function, device):
            yield DriverProcess(
                int(process.pid),
                _known_id(process.gpuInstanceId, gi_id),
                _known_id(process.computeInstanceId, ci_id),
            )


def _process_list(function: str, device: Any) -> list[Any]:
    """The list can grow between the two calls that pynvml makes: try again."""
    for _ in range(_PROCESS_LIST_ATTEMPTS - 1):
        try:
            return list(call_nvml(function, device))
        except DriverNotSupported:
            if function != _MPS_LIST:
                raise
            return []  # Clients of MPS are listed apart, by the drivers that know MPS.
        except DriverError as error:
            if error.code != NvmlCode.INSUFFICIENT_SIZE:
                raise
    return list(call_nvml(function, device))


def _known_id(value: int, otherwise: int | None) -> int | None:
    return otherwise if value == binding.ANY_INSTANCE else int(value)


def _order(process: DriverProcess) -> tuple[int, int, int]:
    gi_id, ci_id = process.gpu_instance_id, process.compute_instance_id
    return process.pid, -1 if gi_id is None else gi_id, -1 if ci_id is None else ci_id
