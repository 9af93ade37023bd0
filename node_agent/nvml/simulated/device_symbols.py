"""Device functions: enumeration, identity, MIG mode and MIG device handles."""

from __future__ import annotations

import re
from ctypes import c_char_p, c_uint, c_void_p

from node_agent.nvml.codes import NvmlCode
from node_agent.nvml.simulated import layout, topology
from node_agent.nvml.simulated.calling import (
    Call,
    at,
    symbol,
    write_pointer,
    write_text,
    write_uint,
)
from node_agent.nvml.simulated.handles import Kind
from node_agent.nvml.simulated.mutations import Refusal, set_mig_mode
from node_agent.nvml.simulated.state import (
    PERSISTENCE_DAEMON,
    ComputeInstance,
    Gpu,
    GpuInstance,
)

_LEGACY_UUID = re.compile(r"MIG-(GPU-[0-9a-f-]+)/(\d+)/(\d+)")
_VIRTUALIZATION_NONE, _VIRTUALIZATION_PASSTHROUGH, _VIRTUALIZATION_VGPU = 0, 1, 2


@symbol("nvmlDeviceGetCount_v2", takes=(c_void_p,))
def count(call: Call, result: int | None) -> None:
    write_uint(result, len(call.node.gpus))


@symbol("nvmlDeviceGetHandleByIndex_v2", takes=(c_uint, c_void_p))
def handle_by_index(call: Call, index: int, result: int | None) -> None:
    for gpu in call.node.gpus:
        if gpu.index == index:
            write_pointer(result, _alive(call, gpu))
            return
    raise Refusal(NvmlCode.INVALID_ARGUMENT)


@symbol("nvmlDeviceGetHandleByUUID", takes=(c_char_p, c_void_p))
def handle_by_uuid(call: Call, uuid: bytes | None, result: int | None) -> None:
    """GPUs, MIG devices, and MIG devices by the UUID format that drivers before R470 used."""
    text = (uuid or b"").decode(errors="replace")
    if not text.startswith(("GPU-", "MIG-")):
        raise Refusal(NvmlCode.INVALID_ARGUMENT)
    write_pointer(result, _named_device(call, text))


def _named_device(call: Call, text: str) -> int:
    legacy = _LEGACY_UUID.fullmatch(text)
    for gpu in call.node.gpus:
        if gpu.uuid == text:
            return _alive(call, gpu)
        for instance, compute in _mig_devices(gpu):
            ids = (gpu.uuid, str(instance.gi_id), str(compute.ci_id))
            if compute.mig_uuid == text or (legacy and legacy.groups() == ids):
                _alive(call, gpu)
                return _mig_handle(call, gpu, instance, compute)
    raise Refusal(NvmlCode.NOT_FOUND)


def _alive(call: Call, gpu: Gpu) -> int:
    if gpu.lost:
        raise Refusal(NvmlCode.GPU_IS_LOST)
    return call.gpu_handle(gpu)


@symbol("nvmlDeviceGetIndex", takes=(c_void_p, c_void_p))
def index(call: Call, device: int | None, result: int | None) -> None:
    """For a MIG device its place in the enumeration, which is no id."""
    gpu, _, compute = call.device(device)
    write_uint(result, compute.index if compute else gpu.index)


@symbol("nvmlDeviceGetName", takes=(c_void_p, c_void_p, c_uint))
def name(call: Call, device: int | None, text: int | None, length: int) -> None:
    gpu, instance, compute = call.device(device)
    full = gpu.facts.device_name
    if instance and compute:
        full = f"{full} MIG {mig_device_profile(gpu, instance, compute)}"
    write_text(text, length, full)


def mig_device_profile(gpu: Gpu, instance: GpuInstance, compute: ComputeInstance) -> str:
    """Profile name of a MIG device: ``1g.5gb``, or ``1c.3g.20gb`` for a part of its instance."""
    profile = gpu.facts.profile(instance.profile_id)
    if profile is None:
        raise Refusal(NvmlCode.UNKNOWN)
    for each in topology.compute_profiles(gpu.facts, profile):
        if each.profile_id == compute.profile_id:
            return topology.compute_profile_name(profile, each)
    return profile.name


@symbol("nvmlDeviceGetUUID", takes=(c_void_p, c_void_p, c_uint))
def uuid(call: Call, device: int | None, text: int | None, length: int) -> None:
    gpu, _, compute = call.device(device)
    write_text(text, length, compute.mig_uuid if compute else gpu.uuid)


@symbol("nvmlDeviceGetMinorNumber", takes=(c_void_p, c_void_p))
def minor_number(call: Call, device: int | None, result: int | None) -> None:
    write_uint(result, call.gpu(device).minor)


@symbol("nvmlDeviceGetPciInfo_v3", takes=(c_void_p, c_void_p))
def pci_info(call: Call, device: int | None, result: int | None) -> None:
    gpu = call.gpu(device)
    info = at(layout.PciInfo, result)
    domain, bus, rest = gpu.pci_bus_id.split(":")
    info.busIdLegacy = f"{domain[-4:]}:{bus}:{rest}".encode()
    info.busId = gpu.pci_bus_id.encode()
    info.domain, info.bus, info.device = int(domain, 16), int(bus, 16), int(rest.split(".")[0], 16)
    info.pciDeviceId = gpu.facts.pci_device_id


@symbol("nvmlDeviceGetArchitecture", takes=(c_void_p, c_void_p))
def architecture(call: Call, device: int | None, result: int | None) -> None:
    write_uint(result, call.device(device)[0].facts.architecture)


@symbol("nvmlDeviceGetCudaComputeCapability", takes=(c_void_p, c_void_p, c_void_p))
def compute_capability(
    call: Call, device: int | None, major: int | None, minor: int | None
) -> None:
    figures = call.gpu(device).facts.compute_capability
    write_uint(major, figures[0])
    write_uint(minor, figures[1])


@symbol("nvmlDeviceGetVirtualizationMode", takes=(c_void_p, c_void_p))
def virtualization_mode(call: Call, device: int | None, result: int | None) -> None:
    gpu = call.gpu(device)
    guest = _VIRTUALIZATION_PASSTHROUGH if gpu.passthrough else _VIRTUALIZATION_NONE
    write_uint(result, _VIRTUALIZATION_VGPU if gpu.vgpu_guest else guest)


@symbol("nvmlDeviceGetPersistenceMode", takes=(c_void_p, c_void_p))
def persistence_mode(call: Call, device: int | None, result: int | None) -> None:
    gpu, instance, _ = call.device(device)
    if instance is not None:
        raise Refusal(NvmlCode.NOT_SUPPORTED)
    write_uint(result, PERSISTENCE_DAEMON in gpu.clients)


@symbol("nvmlDeviceGetMigMode", takes=(c_void_p, c_void_p, c_void_p))
def get_mig_mode(call: Call, device: int | None, current: int | None, pending: int | None) -> None:
    gpu = call.gpu(device)
    if not gpu.facts.mig_capable:
        raise Refusal(NvmlCode.NOT_SUPPORTED)
    write_uint(current, gpu.mig_current)
    write_uint(pending, gpu.mig_pending)


@symbol("nvmlDeviceSetMigMode", takes=(c_void_p, c_uint, c_void_p))
def set_mode(call: Call, device: int | None, mode: int, status: int | None) -> None:
    if mode not in (0, 1):
        raise Refusal(NvmlCode.INVALID_ARGUMENT)
    write_uint(status, NvmlCode.SUCCESS)
    call.require("root")
    with call.change() as node:
        write_uint(status, set_mig_mode(node, call.gpu(device), wanted=bool(mode)))


@symbol("nvmlDeviceIsMigDeviceHandle", takes=(c_void_p, c_void_p))
def is_mig_device(call: Call, device: int | None, result: int | None) -> None:
    write_uint(result, call.device(device)[1] is not None)


@symbol("nvmlDeviceGetGpuInstanceId", takes=(c_void_p, c_void_p))
def gpu_instance_id(call: Call, device: int | None, result: int | None) -> None:
    write_uint(result, _mig_device(call, device)[1].gi_id)


@symbol("nvmlDeviceGetComputeInstanceId", takes=(c_void_p, c_void_p))
def compute_instance_id(call: Call, device: int | None, result: int | None) -> None:
    write_uint(result, _mig_device(call, device)[2].ci_id)


@symbol("nvmlDeviceGetMaxMigDeviceCount", takes=(c_void_p, c_void_p))
def max_mig_device_count(call: Call, device: int | None, result: int | None) -> None:
    """Upper bound of the index; not the number of MIG devices."""
    gpu = call.gpu(device)
    write_uint(result, gpu.facts.compute_slices if gpu.mig_current else 0)


@symbol("nvmlDeviceGetMigDeviceHandleByIndex", takes=(c_void_p, c_uint, c_void_p))
def mig_device_by_index(call: Call, device: int | None, wanted: int, result: int | None) -> None:
    gpu = call.gpu(device)
    if not gpu.mig_current:
        raise Refusal(NvmlCode.NOT_SUPPORTED)
    if wanted >= gpu.facts.compute_slices:
        raise Refusal(NvmlCode.INVALID_ARGUMENT)
    visible = () if call.node.options.permission == "container" else _mig_devices(gpu)
    for instance, compute in visible:
        if compute.index == wanted:
            write_pointer(result, _mig_handle(call, gpu, instance, compute))
            return
    raise Refusal(NvmlCode.NOT_FOUND)


@symbol("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", takes=(c_void_p, c_void_p))
def parent_of_mig_device(call: Call, device: int | None, result: int | None) -> None:
    write_pointer(result, call.gpu_handle(_mig_device(call, device)[0]))


@symbol("nvmlDeviceGetAttributes_v2", takes=(c_void_p, c_void_p))
def attributes(call: Call, device: int | None, result: int | None) -> None:
    gpu, instance, compute = _mig_device(call, device, other=NvmlCode.NOT_SUPPORTED)
    profile = gpu.facts.profile(instance.profile_id)
    figures = at(layout.DeviceAttributes, result)
    if profile is None:
        raise Refusal(NvmlCode.UNKNOWN)
    for each in topology.compute_profiles(gpu.facts, profile):
        if each.profile_id == compute.profile_id:
            figures.multiprocessorCount = each.multiprocessors
    figures.sharedCopyEngineCount = profile.engines.copy
    figures.sharedDecoderCount = profile.engines.decoder
    figures.sharedEncoderCount = profile.engines.encoder
    figures.sharedJpegCount = profile.engines.jpeg
    figures.sharedOfaCount = profile.engines.ofa
    figures.gpuInstanceSliceCount = profile.compute_slices
    figures.computeInstanceSliceCount = compute.size
    figures.memorySizeMB = profile.memory_mib


def _mig_devices(gpu: Gpu) -> list[tuple[GpuInstance, ComputeInstance]]:
    return [(each, compute) for each in gpu.instances for compute in each.compute_instances]


def _mig_handle(call: Call, gpu: Gpu, instance: GpuInstance, compute: ComputeInstance) -> int:
    position = call.node.gpus.index(gpu)
    return call.handle(Kind.MIG_DEVICE, position, instance.gi_id, compute.ci_id)


def _mig_device(
    call: Call, device: int | None, *, other: NvmlCode = NvmlCode.INVALID_ARGUMENT
) -> tuple[Gpu, GpuInstance, ComputeInstance]:
    """A MIG device handle; this code for a parent handle."""
    gpu, instance, compute = call.device(device)
    if instance is None or compute is None:
        raise Refusal(other)
    return gpu, instance, compute
