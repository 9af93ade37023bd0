"""GPU instance functions: profiles, placements, capacity, create, list, destroy."""

from __future__ import annotations

from ctypes import c_uint, c_void_p

from hami_web.core.placement import Placement
from node_agent.nvml.codes import NvmlCode
from node_agent.nvml.naming import NVML_NAME_PREFIX
from node_agent.nvml.simulated import layout, mutations, topology
from node_agent.nvml.simulated.calling import (
    Call,
    at,
    symbol,
    versioned,
    write_placements,
    write_pointer,
    write_pointers,
    write_uint,
)
from node_agent.nvml.simulated.handles import Kind
from node_agent.nvml.simulated.models import ProfileModel
from node_agent.nvml.simulated.mutations import Refusal
from node_agent.nvml.simulated.state import Gpu, GpuInstance

_PROFILE_NUMBERS = range(18)


@symbol("nvmlDeviceGetGpuInstanceProfileInfo", takes=(c_void_p, c_uint, c_void_p))
def profile_v1(call: Call, device: int | None, number: int, result: int | None) -> None:
    profile = _profile_by_number(call, device, number)
    _fill_profile(at(layout.GpuInstanceProfile, result), profile)


@symbol("nvmlDeviceGetGpuInstanceProfileInfoV", takes=(c_void_p, c_uint, c_void_p))
def profile_v2(call: Call, device: int | None, number: int, result: int | None) -> None:
    info = versioned(layout.GpuInstanceProfileV2, result, 2)
    profile = _profile_by_number(call, device, number)
    _fill_profile(info, profile)
    info.name = f"{NVML_NAME_PREFIX}{profile.name}".encode()


@symbol("nvmlDeviceGetGpuInstanceProfileInfoByIdV", takes=(c_void_p, c_uint, c_void_p))
def profile_by_id(call: Call, device: int | None, profile_id: int, result: int | None) -> None:
    info = versioned(layout.GpuInstanceProfileV2, result, 2)
    gpu = _gpu_with_profiles(call, device)
    profile = mutations.known_profile(gpu, profile_id)
    _fill_profile(info, profile)
    info.name = f"{NVML_NAME_PREFIX}{profile.name}".encode()


def _gpu_with_profiles(call: Call, device: int | None) -> Gpu:
    gpu = call.gpu(device)
    unsupported = call.node.options.profile_info_needs_mig and not gpu.mig_current
    if not gpu.facts.mig_capable or unsupported:
        raise Refusal(NvmlCode.NOT_SUPPORTED)
    return gpu


def _profile_by_number(call: Call, device: int | None, number: int) -> ProfileModel:
    gpu = _gpu_with_profiles(call, device)
    if number not in _PROFILE_NUMBERS:
        raise Refusal(NvmlCode.INVALID_ARGUMENT)
    profile = gpu.facts.profile_by_enum(number)
    if profile is None:
        raise Refusal(NvmlCode.NOT_SUPPORTED)
    return profile


def _fill_profile(
    info: layout.GpuInstanceProfile | layout.GpuInstanceProfileV2, profile: ProfileModel
) -> None:
    info.id = profile.profile_id
    info.isP2pSupported = 0
    info.sliceCount = profile.compute_slices
    info.instanceCount = profile.instance_count
    info.multiprocessorCount = profile.multiprocessors
    info.copyEngineCount = profile.engines.copy
    info.decoderCount = profile.engines.decoder
    info.encoderCount = profile.engines.encoder
    info.jpegCount = profile.engines.jpeg
    info.ofaCount = profile.engines.ofa
    info.memorySizeMB = profile.memory_mib


@symbol(
    "nvmlDeviceGetGpuInstancePossiblePlacements_v2", takes=(c_void_p, c_uint, c_void_p, c_void_p)
)
def possible_placements(
    call: Call, device: int | None, profile_id: int, array: int | None, count: int | None
) -> None:
    """All legal placements, whatever exists."""
    call.require("root")
    profile = mutations.known_profile(_gpu_with_profiles(call, device), profile_id)
    write_placements(array, count, [Placement(start, profile.size) for start in profile.starts])


@symbol("nvmlDeviceGetGpuInstanceRemainingCapacity", takes=(c_void_p, c_uint, c_void_p))
def remaining_capacity(call: Call, device: int | None, profile_id: int, result: int | None) -> None:
    gpu = call.gpu(device)
    mutations.require_mig(gpu)
    profile = mutations.known_profile(gpu, profile_id)
    write_uint(result, topology.remaining_capacity(gpu, profile))


@symbol("nvmlDeviceCreateGpuInstance", takes=(c_void_p, c_uint, c_void_p))
def create(call: Call, device: int | None, profile_id: int, result: int | None) -> None:
    _create(call, device, profile_id, None, result)


@symbol("nvmlDeviceCreateGpuInstanceWithPlacement", takes=(c_void_p, c_uint, c_void_p, c_void_p))
def create_with_placement(
    call: Call, device: int | None, profile_id: int, placement: int | None, result: int | None
) -> None:
    wanted = at(layout.Placement, placement)
    if wanted.size < 1:
        raise Refusal(NvmlCode.INVALID_ARGUMENT)
    _create(call, device, profile_id, Placement(wanted.start, wanted.size), result)


def _create(
    call: Call,
    device: int | None,
    profile_id: int,
    placement: Placement | None,
    result: int | None,
) -> None:
    call.require("root")
    with call.change() as node:
        gpu = call.gpu(device)
        instance = mutations.create_gpu_instance(node, gpu, profile_id, placement)
        write_pointer(result, _handle(call, gpu, instance))


@symbol("nvmlDeviceGetGpuInstances", takes=(c_void_p, c_uint, c_void_p, c_void_p))
def list_instances(
    call: Call, device: int | None, profile_id: int, array: int | None, count: int | None
) -> None:
    """The instances of this profile; the array must have room for the profile's instanceCount."""
    call.require("root")
    gpu = call.gpu(device)
    mutations.require_mig(gpu)
    mutations.known_profile(gpu, profile_id)
    found = [each for each in gpu.instances if each.profile_id == profile_id]
    write_pointers(array, count, [_handle(call, gpu, each) for each in found])


@symbol("nvmlDeviceGetGpuInstanceById", takes=(c_void_p, c_uint, c_void_p))
def instance_by_id(call: Call, device: int | None, gi_id: int, result: int | None) -> None:
    call.require("root")
    gpu = call.gpu(device)
    mutations.require_mig(gpu)
    instance = gpu.instance(gi_id)
    if instance is None:
        raise Refusal(NvmlCode.NOT_FOUND)
    write_pointer(result, _handle(call, gpu, instance))


@symbol("nvmlGpuInstanceGetInfo", takes=(c_void_p, c_void_p))
def instance_info(call: Call, handle: int | None, result: int | None) -> None:
    call.require("root")
    gpu, instance = call.gpu_instance(handle)
    info = at(layout.GpuInstanceInfo, result)
    info.device = call.gpu_handle(gpu)
    info.id = instance.gi_id
    info.profileId = instance.profile_id
    info.placement.start, info.placement.size = instance.start, instance.size


@symbol("nvmlGpuInstanceDestroy", takes=(c_void_p,))
def destroy(call: Call, handle: int | None) -> None:
    call.require("root")
    call.gpu_instance(handle)
    with call.change():
        mutations.destroy_gpu_instance(*call.gpu_instance(handle))


def _handle(call: Call, gpu: Gpu, instance: GpuInstance) -> int:
    return call.handle(Kind.GPU_INSTANCE, call.node.gpus.index(gpu), instance.gi_id)
