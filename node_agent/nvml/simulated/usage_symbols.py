"""Memory and process functions, on GPUs and on MIG devices."""

from __future__ import annotations

import ctypes
from ctypes import c_uint, c_void_p

from node_agent.nvml.codes import NvmlCode
from node_agent.nvml.simulated import layout
from node_agent.nvml.simulated.calling import (
    Call,
    at,
    read_uint,
    symbol,
    versioned,
    write_uint,
)
from node_agent.nvml.simulated.mutations import Refusal
from node_agent.nvml.simulated.state import Gpu, GpuInstance, Process

MIB = 1 << 20
# An empty MIG device shows some MiB as used (published listings).
_EMPTY_INSTANCE_MIB = 13
_RESERVED_MIB = 512


@symbol("nvmlDeviceGetMemoryInfo", takes=(c_void_p, c_void_p))
def memory(call: Call, device: int | None, result: int | None) -> None:
    """The first version counts reserved memory as used."""
    total, reserved, used = _memory_mib(call, device)
    info = at(layout.Memory, result)
    info.total, info.used = total * MIB, (used + reserved) * MIB
    info.free = info.total - info.used


@symbol("nvmlDeviceGetMemoryInfo_v2", takes=(c_void_p, c_void_p))
def memory_v2(call: Call, device: int | None, result: int | None) -> None:
    info = versioned(layout.MemoryV2, result, 2)
    total, reserved, used = _memory_mib(call, device)
    info.total, info.reserved, info.used = total * MIB, reserved * MIB, used * MIB
    info.free = info.total - info.used - info.reserved


def _memory_mib(call: Call, device: int | None) -> tuple[int, int, int]:
    """Total, reserved and used MiB; a MIG device shows its whole GPU instance."""
    gpu, instance, _ = call.device(device)
    if instance is None:
        _require_aggregate(call, gpu)
        used = sum(each.memory_mib for each in gpu.processes)
        return gpu.facts.total_memory_mib, _RESERVED_MIB, used
    profile = gpu.facts.profile(instance.profile_id)
    if profile is None:
        raise Refusal(NvmlCode.UNKNOWN)
    held = sum(each.memory_mib for each in gpu.processes if each.gi_id == instance.gi_id)
    return profile.memory_mib, 0, held + _EMPTY_INSTANCE_MIB


@symbol("nvmlDeviceGetComputeRunningProcesses_v3", takes=(c_void_p, c_void_p, c_void_p))
def compute_processes(call: Call, device: int | None, count: int | None, array: int | None) -> None:
    _list_processes(call, device, "compute", count, array)


@symbol("nvmlDeviceGetGraphicsRunningProcesses_v3", takes=(c_void_p, c_void_p, c_void_p))
def graphics_processes(
    call: Call, device: int | None, count: int | None, array: int | None
) -> None:
    _list_processes(call, device, "graphics", count, array)


@symbol("nvmlDeviceGetMPSComputeRunningProcesses_v3", takes=(c_void_p, c_void_p, c_void_p))
def mps_processes(call: Call, device: int | None, count: int | None, array: int | None) -> None:
    _list_processes(call, device, "mps", count, array)


def _list_processes(
    call: Call, device: int | None, kind: str, count: int | None, array: int | None
) -> None:
    """INSUFFICIENT_SIZE with the wanted count when the array is too short."""
    gpu, instance, compute = call.device(device)
    found = [each for each in gpu.processes if each.kind == kind]
    if instance is None:
        _require_aggregate(call, gpu)
    elif compute is not None:
        own = (instance.gi_id, compute.ci_id)
        found = [each for each in found if (each.gi_id, each.ci_id) == own]
    room = read_uint(count)
    write_uint(count, len(found))
    if len(found) > room or (found and not array):
        raise Refusal(NvmlCode.INSUFFICIENT_SIZE)
    if array:
        _fill_processes(array, found)


def _fill_processes(array: int, processes: list[Process]) -> None:
    rows = (layout.ProcessInfo * len(processes)).from_address(array)
    for row, process in zip(rows, processes, strict=True):
        row.pid = process.pid
        row.usedGpuMemory = process.memory_mib * MIB
        row.gpuInstanceId = _id_or_any(process.gi_id)
        row.computeInstanceId = _id_or_any(process.ci_id)


def _require_aggregate(call: Call, gpu: Gpu) -> None:
    """With MIG on, figures over all instances are for privileged callers."""
    if gpu.mig_current:
        call.require("root")


def _id_or_any(number: int | None) -> int:
    return layout.ANY_INSTANCE if number is None else number


@symbol("nvmlDeviceGetUtilizationRates", takes=(c_void_p, c_void_p))
def utilization(call: Call, device: int | None, result: int | None) -> None:
    """Not there with MIG on; idle otherwise."""
    gpu, instance, _ = call.device(device)
    if gpu.mig_current or isinstance(instance, GpuInstance):
        raise Refusal(NvmlCode.NOT_SUPPORTED)
    if not result:
        raise Refusal(NvmlCode.INVALID_ARGUMENT)
    ctypes.memset(result, 0, 2 * ctypes.sizeof(c_uint))
