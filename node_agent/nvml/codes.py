"""NVML return codes by number, with a short text for each."""

from __future__ import annotations

from enum import IntEnum


class NvmlCode(IntEnum):
    """The codes of ``nvmlReturn_t`` that a MIG caller can meet (source: nvml.h)."""

    SUCCESS = 0
    UNINITIALIZED = 1
    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    ALREADY_INITIALIZED = 5
    NOT_FOUND = 6
    INSUFFICIENT_SIZE = 7
    INSUFFICIENT_POWER = 8
    DRIVER_NOT_LOADED = 9
    TIMEOUT = 10
    IRQ_ISSUE = 11
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    CORRUPTED_INFOROM = 14
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    OPERATING_SYSTEM = 17
    LIB_RM_VERSION_MISMATCH = 18
    IN_USE = 19
    MEMORY = 20
    NO_DATA = 21
    VGPU_ECC_NOT_SUPPORTED = 22
    INSUFFICIENT_RESOURCES = 23
    FREQ_NOT_SUPPORTED = 24
    ARGUMENT_VERSION_MISMATCH = 25
    DEPRECATED = 26
    NOT_READY = 27
    GPU_NOT_FOUND = 28
    INVALID_STATE = 29
    UNKNOWN = 999


TEXTS: dict[int, str] = {
    NvmlCode.SUCCESS: "success",
    NvmlCode.UNINITIALIZED: "NVML is not initialized in this process, or its session has ended",
    NvmlCode.INVALID_ARGUMENT: "an argument is invalid, or the object it names is gone",
    NvmlCode.NOT_SUPPORTED: "not supported by this GPU, its MIG mode or this driver",
    NvmlCode.NO_PERMISSION: "no permission: root or the MIG configuration capability is missing",
    NvmlCode.ALREADY_INITIALIZED: "already initialized",
    NvmlCode.NOT_FOUND: "not found",
    NvmlCode.INSUFFICIENT_SIZE: "the buffer is too small",
    NvmlCode.INSUFFICIENT_POWER: "external power is missing",
    NvmlCode.DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded",
    NvmlCode.TIMEOUT: "the time is over",
    NvmlCode.IRQ_ISSUE: "the kernel reports an interrupt problem",
    NvmlCode.LIBRARY_NOT_FOUND: "libnvidia-ml.so.1 is not found: is the NVIDIA driver installed?",
    NvmlCode.FUNCTION_NOT_FOUND: "this version of the NVIDIA driver lacks the function",
    NvmlCode.CORRUPTED_INFOROM: "the infoROM of the GPU is corrupted",
    NvmlCode.GPU_IS_LOST: "the GPU has fallen off the bus",
    NvmlCode.RESET_REQUIRED: "the GPU needs a reset",
    NvmlCode.OPERATING_SYSTEM: "the operating system has blocked the request",
    NvmlCode.LIB_RM_VERSION_MISMATCH: "the NVML library and the loaded driver differ in version",
    NvmlCode.IN_USE: "in use by a process, an instance or another client",
    NvmlCode.MEMORY: "out of memory",
    NvmlCode.NO_DATA: "no data",
    NvmlCode.VGPU_ECC_NOT_SUPPORTED: "not supported with ECC on",
    NvmlCode.INSUFFICIENT_RESOURCES: "insufficient resources: placement or engines are taken",
    NvmlCode.FREQ_NOT_SUPPORTED: "the frequency is not supported",
    NvmlCode.ARGUMENT_VERSION_MISMATCH: "the library does not know this structure version",
    NvmlCode.DEPRECATED: "the function is deprecated",
    NvmlCode.NOT_READY: "not ready",
    NvmlCode.GPU_NOT_FOUND: "no GPU found",
    NvmlCode.INVALID_STATE: "the object is in a state that does not allow this",
    NvmlCode.UNKNOWN: "unknown error",
}


def code_text(code: int) -> str:
    """A short text for any code, also for one that is not listed."""
    return TEXTS.get(code, f"NVML error {code}")
