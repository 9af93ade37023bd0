"""Compute instance functions. All of them work on a GPU instance handle or on their own."""

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
from node_agent.nvml.simulated.state import ComputeInstance, Gpu, GpuInstance

_PROFILE_NUMBERS = range(9)
_SHARED_ENGINES = 0


@symbol("nvmlGpuInstanceGetComputeInstanceProfileInfo", takes=(c_void_p, c_uint, c_uint, c_void_p))
def profile_v1(
    call: Call, handle: int | None, number: int, engines: int, result: int | None
) -> None:
    gi_profile, profile = _profile(call, handle, number, engines)
    _fill_profile(at(layout.ComputeInstanceProfile, result), gi_profile, profile)


@symbol("nvmlGpuInstanceGetComputeInstanceProfileInfoV", takes=(c_void_p, c_uint, c_uint, c_void_p))
def profile_v2(
    call: Call, handle: int | None, number: int, engines: int, result: int | None
) -> None:
    info = versioned(layout.ComputeInstanceProfileV2, result, 2)
    gi_profile, profile = _profile(call, handle, number, engines)
    _fill_profile(info, gi_profile, profile)
    info.name = f"{NVML_NAME_PREFIX}{topology.compute_profile_name(gi_profile, profile)}".encode()


def _profile(
    call: Call, handle: int | None, number: int, engines: int
) -> tuple[ProfileModel, topology.ComputeProfile]:
    call.require("root")
    gpu, instance = call.gpu_instance(handle)
    if number not in _PROFILE_NUMBERS or engines != _SHARED_ENGINES:
        raise Refusal(NvmlCode.INVALID_ARGUMENT)
    profile = mutations.compute_profile(gpu, instance, number)
    return mutations.known_profile(gpu, instance.profile_id), profile


def _fill_profile(
    info: layout.ComputeInstanceProfile | layout.ComputeInstanceProfileV2,
    gi_profile: ProfileModel,
    profile: topology.ComputeProfile,
) -> None:
    info.id = profile.profile_id
    info.sliceCount = profile.compute_slices
    info.instanceCount = profile.instance_count
    info.multiprocessorCount = profile.multiprocessors
    info.sharedCopyEngineCount = gi_profile.engines.copy
    info.sharedDecoderCount = gi_profile.engines.decoder
    info.sharedEncoderCount = gi_profile.engines.encoder
    info.sharedJpegCount = gi_profile.engines.jpeg
    info.sharedOfaCount = gi_profile.engines.ofa


@symbol("nvmlGpuInstanceGetComputeInstanceRemainingCapacity", takes=(c_void_p, c_uint, c_void_p))
def remaining_capacity(call: Call, handle: int | None, profile_id: int, result: int | None) -> None:
    gpu, instance = call.gpu_instance(handle)
    profile = mutations.compute_profile(gpu, instance, profile_id)
    write_uint(result, len(topology.free_compute_starts(instance, profile)))


@symbol(
    "nvmlGpuInstanceGetComputeInstancePossiblePlacements",
    takes=(c_void_p, c_uint, c_void_p, c_void_p),
)
def possible_placements(
    call: Call, handle: int | None, profile_id: int, array: int | None, count: int | None
) -> None:
    gpu, instance = call.gpu_instance(handle)
    profile = mutations.compute_profile(gpu, instance, profile_id)
    starts = profile.starts
    write_placements(array, count, [Placement(each, profile.compute_slices) for each in starts])


@symbol("nvmlGpuInstanceCreateComputeInstance", takes=(c_void_p, c_uint, c_void_p))
def create(call: Call, handle: int | None, profile_id: int, result: int | None) -> None:
    _create(call, handle, profile_id, None, result)


@symbol(
    "nvmlGpuInstanceCreateComputeInstanceWithPlacement",
    takes=(c_void_p, c_uint, c_void_p, c_void_p),
)
def create_with_placement(
    call: Call, handle: int | None, profile_id: int, placement: int | None, result: int | None
) -> None:
    wanted = at(layout.Placement, placement)
    gpu, instance = call.gpu_instance(handle)
    if wanted.size != mutations.compute_profile(gpu, instance, profile_id).compute_slices:
        raise Refusal(NvmlCode.INVALID_ARGUMENT)
    _create(call, handle, profile_id, wanted.start, result)


def _create(
    call: Call, handle: int | None, profile_id: int, start: int | None, result: int | None
) -> None:
    call.require("root")
    call.gpu_instance(handle)
    with call.change() as node:
        gpu, instance = call.gpu_instance(handle)
        compute = mutations.create_compute_instance(node, gpu, instance, profile_id, start)
        write_pointer(result, _handle(call, Kind.COMPUTE_INSTANCE, gpu, instance, compute))


@symbol("nvmlGpuInstanceGetComputeInstances", takes=(c_void_p, c_uint, c_void_p, c_void_p))
def list_instances(
    call: Call, handle: int | None, profile_id: int, array: int | None, count: int | None
) -> None:
    gpu, instance = call.gpu_instance(handle)
    mutations.compute_profile(gpu, instance, profile_id)
    found = [each for each in instance.compute_instances if each.profile_id == profile_id]
    handles = [_handle(call, Kind.COMPUTE_INSTANCE, gpu, instance, each) for each in found]
    write_pointers(array, count, handles)


@symbol("nvmlGpuInstanceGetComputeInstanceById", takes=(c_void_p, c_uint, c_void_p))
def instance_by_id(call: Call, handle: int | None, ci_id: int, result: int | None) -> None:
    gpu, instance = call.gpu_instance(handle)
    for compute in instance.compute_instances:
        if compute.ci_id == ci_id:
            write_pointer(result, _handle(call, Kind.COMPUTE_INSTANCE, gpu, instance, compute))
            return
    raise Refusal(NvmlCode.NOT_FOUND)


@symbol("nvmlComputeInstanceGetInfo_v2", takes=(c_void_p, c_void_p))
def instance_info(call: Call, handle: int | None, result: int | None) -> None:
    gpu, instance, compute = call.compute_instance(handle)
    info = at(layout.ComputeInstanceInfo, result)
    info.device = _handle(call, Kind.MIG_DEVICE, gpu, instance, compute)
    info.gpuInstance = call.handle(Kind.GPU_INSTANCE, call.node.gpus.index(gpu), instance.gi_id)
    info.id = compute.ci_id
    info.profileId = compute.profile_id
    info.placement.start, info.placement.size = compute.start, compute.size


@symbol("nvmlComputeInstanceDestroy", takes=(c_void_p,))
def destroy(call: Call, handle: int | None) -> None:
    call.require("root")
    call.compute_instance(handle)
    with call.change():
        mutations.destroy_compute_instance(*call.compute_instance(handle))


def _handle(
    call: Call, kind: Kind, gpu: Gpu, instance: GpuInstance, compute: ComputeInstance
) -> int:
    return call.handle(kind, call.node.gpus.index(gpu), instance.gi_id, compute.ci_id)
