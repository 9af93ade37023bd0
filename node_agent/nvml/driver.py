"""The NVML driver: :class:`~node_agent.nvml.ports.MigDriver` over pynvml."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from hami_web.core.placement import Placement
from node_agent.nvml.binding import NvmlSession, call_nvml, create_at
from node_agent.nvml.codes import NvmlCode
from node_agent.nvml.events import NvmlEvents
from node_agent.nvml.ports import (
    DriverError,
    DriverGpu,
    DriverProcess,
    DriverProfile,
    DriverUnavailable,
    Guest,
    LiveComputeInstance,
    LiveInstance,
    MigModeChange,
    RecoveryAction,
)
from node_agent.nvml.profiles import usable_profiles, whole_compute_profile
from node_agent.nvml.reading import (
    bare_instance,
    device_handle,
    find_instances,
    gpu_instance_handle,
    guest_of,
    multiprocessors_of,
    read_compute_instance,
    read_gpu,
    read_processes,
    read_recovery_action,
)

logger = logging.getLogger(__name__)


class PynvmlDriver:
    """One NVML session; opens on construction, see :class:`MigDriver` for the promises.

    Raises :class:`DriverUnavailable` when there is no library or no driver. GPUs are looked up by
    UUID in each call, because an index can mean another GPU after a reboot.
    """

    def __init__(self) -> None:
        self._session = NvmlSession()
        self._lost: tuple[int, ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def gpus(self) -> tuple[DriverGpu, ...]:
        with self._session.use("gpus"):
            found, lost = [], []
            for index in range(call_nvml("nvmlDeviceGetCount")):
                try:
                    found.append(read_gpu(call_nvml("nvmlDeviceGetHandleByIndex", index)))
                except DriverUnavailable:
                    raise
                except DriverError as error:
                    logger.warning("GPU %d cannot be read: %s", index, error)
                    lost.append(index)
            self._lost = tuple(lost)
            return tuple(found)

    def lost_indexes(self) -> tuple[int, ...]:
        with self._session.use("lost_indexes"):
            return self._lost

    def gpu(self, uuid: str) -> DriverGpu:
        with self._session.use("gpu"):
            return read_gpu(device_handle(uuid))

    def profiles(self, uuid: str) -> tuple[DriverProfile, ...]:
        with self._session.use("profiles"):
            return usable_profiles(device_handle(uuid))

    def instances(self, uuid: str) -> tuple[LiveInstance, ...]:
        with self._session.use("instances"):
            return tuple(each.instance for each in find_instances(uuid))

    def create_gpu_instance(self, uuid: str, profile_id: int, placement: Placement) -> LiveInstance:
        with self._session.use("create_gpu_instance"):
            handle = create_at(device_handle(uuid), profile_id, placement)
            made = bare_instance(uuid, handle)
            if (made.profile_id, made.placement) == (profile_id, placement):
                return made
            call_nvml("nvmlGpuInstanceDestroy", handle)
            raise DriverError(
                NvmlCode.UNKNOWN,
                "nvmlDeviceCreateGpuInstanceWithPlacement",
                f"asked for profile {profile_id} at {placement}, the driver made profile"
                f" {made.profile_id} at {made.placement}; it is destroyed again",
            )

    def create_compute_instance(self, uuid: str, gpu_instance_id: int) -> LiveComputeInstance:
        with self._session.use("create_compute_instance"):
            device = device_handle(uuid)
            instance = call_nvml("nvmlDeviceGetGpuInstanceById", device, gpu_instance_id)
            profile_id = int(call_nvml("nvmlGpuInstanceGetInfo", instance).profileId)
            wanted = whole_compute_profile(instance, multiprocessors_of(device, profile_id))
            made = call_nvml("nvmlGpuInstanceCreateComputeInstance", instance, wanted)
            return read_compute_instance(made)[0]

    def destroy_compute_instance(
        self, uuid: str, gpu_instance_id: int, compute_instance_id: int
    ) -> None:
        with self._session.use("destroy_compute_instance"):
            instance = gpu_instance_handle(uuid, gpu_instance_id)
            compute = call_nvml(
                "nvmlGpuInstanceGetComputeInstanceById", instance, compute_instance_id
            )
            call_nvml("nvmlComputeInstanceDestroy", compute)

    def destroy_gpu_instance(self, uuid: str, gpu_instance_id: int) -> None:
        with self._session.use("destroy_gpu_instance"):
            instance = gpu_instance_handle(uuid, gpu_instance_id)
            call_nvml("nvmlGpuInstanceDestroy", instance)

    def processes(self, uuid: str) -> tuple[DriverProcess, ...]:
        with self._session.use("processes"):
            return read_processes(uuid)

    def enable_mig_mode(self, uuid: str) -> MigModeChange:
        with self._session.use("enable_mig_mode"):
            status = int(call_nvml("nvmlDeviceSetMigMode", device_handle(uuid), 1))
            # The GPU may have been unbound and bound again: look it up anew.
            current, pending = call_nvml("nvmlDeviceGetMigMode", device_handle(uuid))
            return MigModeChange(status, current=bool(current), pending=bool(pending))

    def guest(self, uuid: str) -> Guest:
        with self._session.use("guest"):
            return guest_of(device_handle(uuid))

    def recovery_action(self, uuid: str) -> RecoveryAction | None:
        with self._session.use("recovery_action"):
            return read_recovery_action(device_handle(uuid))

    def events(self, uuids: Sequence[str]) -> NvmlEvents:
        return NvmlEvents(self._session, uuids)

    def remaining_capacity(self, uuid: str, profile_id: int) -> int:
        with self._session.use("remaining_capacity"):
            function = "nvmlDeviceGetGpuInstanceRemainingCapacity"
            return int(call_nvml(function, device_handle(uuid), profile_id))

    def close(self) -> None:
        self._session.close()
