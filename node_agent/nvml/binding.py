"""Calls into pynvml: one session of this process, by-reference arguments, errors of our own.

The only module besides the simulator's installer that imports pynvml. An exception of pynvml never
leaves it: such errors compare and hash badly and break error reporters, so the code is taken out
as a number and the new error is raised outside of the handler, with no trace of the old one.
"""

from __future__ import annotations

import ctypes
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pynvml

from hami_web.core.placement import Placement
from node_agent.nvml.codes import NvmlCode, code_text
from node_agent.nvml.ports import (
    DriverError,
    DriverGpuLost,
    DriverInsufficientResources,
    DriverInUse,
    DriverInvalidArgument,
    DriverNoPermission,
    DriverNotFound,
    DriverNotSupported,
    DriverUnavailable,
)

logger = logging.getLogger(__name__)

CLOSE_WAIT_S = 10.0
# NVML writes as many handles as there are and is not told the size: leave room for every id.
_LEAST_ROOM = 16
GI_PROFILE_NUMBERS = range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT)
CI_PROFILE_NUMBERS = range(pynvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT)
SHARED_ENGINES: int = pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED
FIELD_RECOVERY_ACTION: int = pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
ANY_INSTANCE: int = pynvml.NVML_GPU_INSTANCE_ID_ANY

_ERRORS: dict[int, type[DriverError]] = {
    NvmlCode.UNINITIALIZED: DriverUnavailable,
    NvmlCode.DRIVER_NOT_LOADED: DriverUnavailable,
    NvmlCode.LIBRARY_NOT_FOUND: DriverUnavailable,
    NvmlCode.OPERATING_SYSTEM: DriverUnavailable,
    NvmlCode.LIB_RM_VERSION_MISMATCH: DriverUnavailable,
    NvmlCode.NOT_SUPPORTED: DriverNotSupported,
    NvmlCode.FUNCTION_NOT_FOUND: DriverNotSupported,
    NvmlCode.NO_PERMISSION: DriverNoPermission,
    NvmlCode.INVALID_ARGUMENT: DriverInvalidArgument,
    NvmlCode.NOT_FOUND: DriverNotFound,
    NvmlCode.GPU_NOT_FOUND: DriverNotFound,
    NvmlCode.IN_USE: DriverInUse,
    NvmlCode.INSUFFICIENT_RESOURCES: DriverInsufficientResources,
    NvmlCode.GPU_IS_LOST: DriverGpuLost,
    NvmlCode.RESET_REQUIRED: DriverGpuLost,
}


class ErrorCounts:
    """How often each NVML call failed with each code in this process. Thread-safe.

    Answers that mean "no" to a question are left out: probing for profiles that the GPU lacks, a
    wait for events that none ended.
    """

    _PROBES = ("ProfileInfo", "GetMigMode", "GetVirtualizationMode", "GetFieldValues")
    _NO = frozenset(
        {NvmlCode.NOT_SUPPORTED, NvmlCode.INVALID_ARGUMENT, NvmlCode.FUNCTION_NOT_FOUND}
    )

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._counts: Counter[tuple[str, int]] = Counter()

    def add(self, function: str, code: int) -> None:
        """Count one failed call."""
        probe = any(word in function for word in self._PROBES)
        if code == NvmlCode.TIMEOUT or (probe and code in self._NO):
            return
        with self._mutex:
            self._counts[function, code] += 1

    def items(self) -> list[tuple[tuple[str, int], int]]:
        """(function, code) with their number, sorted."""
        with self._mutex:
            return sorted(self._counts.items())


ERRORS = ErrorCounts()


def driver_error(code: int, function: str) -> DriverError:
    """Our error for an NVML code."""
    return _ERRORS.get(code, DriverError)(code, function, code_text(code))


def call_nvml(function: str, *arguments: Any) -> Any:
    """Call a function of pynvml. Raises :class:`DriverError` and nothing else for NVML's errors."""
    try:
        return getattr(pynvml, function)(*arguments)
    except pynvml.NVMLError as error:
        code = int(error.value)
    except pynvml.NVMLLibraryMismatchError:
        # pynvml's own word, no NVMLError, for a function of that version being absent.
        code = NvmlCode.FUNCTION_NOT_FOUND
    ERRORS.add(function, int(code))
    raise driver_error(code, function)


class NvmlSession:
    """NVML from init to shutdown, owned by one process.

    Raises :class:`DriverUnavailable` where there is no library or driver, after :meth:`close`, and
    in a forked child, whose NVML state would not be its own.
    """

    def __init__(self) -> None:
        call_nvml("nvmlInit")
        self._pid = os.getpid()
        self._closed = False
        self._users = 0
        self._idle = threading.Condition()

    @contextmanager
    def use(self, function: str) -> Iterator[None]:
        """Keep the session open for the block; ``function`` names it in errors."""
        self._require_own_process(function)
        with self._idle:
            if self._closed:
                raise DriverUnavailable(
                    NvmlCode.UNINITIALIZED, function, "the NVML session is closed"
                )
            self._users += 1
        try:
            yield
        finally:
            with self._idle:
                self._users -= 1
                self._idle.notify_all()

    def close(self) -> None:
        """End the session once running calls are done; a second call does nothing."""
        if self._pid != os.getpid():
            return
        deadline = time.monotonic() + CLOSE_WAIT_S
        with self._idle:
            if self._closed:
                return
            self._closed = True
            self._idle.wait_for(lambda: not self._users, deadline - time.monotonic())
            if self._users:
                logger.warning("NVML stays open: %d calls did not end in time", self._users)
                return
        try:
            call_nvml("nvmlShutdown")
        except DriverUnavailable as error:
            logger.info("the NVML session had ended before it was closed: %s", error)

    def _require_own_process(self, function: str) -> None:
        if self._pid != os.getpid():
            raise DriverUnavailable(
                NvmlCode.UNINITIALIZED,
                function,
                f"the NVML session belongs to process {self._pid}; a forked process opens its own",
            )


def field_value(device: Any, field: int) -> int:
    """One field of type unsigned int; its own return code counts like that of a call."""
    function = "nvmlDeviceGetFieldValues"
    (found,) = call_nvml(function, device, [field])
    code = int(found.nvmlReturn)
    if code == NvmlCode.SUCCESS:
        return int(found.value.uiVal)
    ERRORS.add(function, code)
    raise driver_error(code, function)


def possible_placements(device: Any, profile_id: int) -> tuple[Placement, ...]:
    """All legal placements of a profile, by start."""
    count = ctypes.c_uint()
    function = "nvmlDeviceGetGpuInstancePossiblePlacements"
    call_nvml(function, device, profile_id, None, ctypes.byref(count))
    array = (pynvml.c_nvmlGpuInstancePlacement_t * count.value)()
    call_nvml(function, device, profile_id, array, ctypes.byref(count))
    return tuple(sorted(Placement(each.start, each.size) for each in array[: count.value]))


def create_at(device: Any, profile_id: int, placement: Placement) -> Any:
    """The handle of a new GPU instance at exactly this placement."""
    wanted = pynvml.c_nvmlGpuInstancePlacement_t(placement.start, placement.size)
    function = "nvmlDeviceCreateGpuInstanceWithPlacement"
    return call_nvml(function, device, profile_id, ctypes.byref(wanted))


def gpu_instance_handles(device: Any, profile_id: int, room: int) -> tuple[Any, ...]:
    """Handles of the GPU instances of a profile; ``room`` is its largest instance count."""
    array = (pynvml.c_nvmlGpuInstance_t * max(room, _LEAST_ROOM))()
    count = ctypes.c_uint()
    call_nvml("nvmlDeviceGetGpuInstances", device, profile_id, array, ctypes.byref(count))
    return tuple(array[: count.value])


def compute_instance_handles(gpu_instance: Any, profile_id: int, room: int) -> tuple[Any, ...]:
    """Handles of the compute instances of a profile; ``room`` is its largest instance count."""
    array = (pynvml.c_nvmlComputeInstance_t * max(room, _LEAST_ROOM))()
    count = ctypes.c_uint()
    function = "nvmlGpuInstanceGetComputeInstances"
    call_nvml(function, gpu_instance, profile_id, array, ctypes.byref(count))
    return tuple(array[: count.value])
