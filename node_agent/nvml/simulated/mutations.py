"""What changes a simulated node, with the refusals of a real one."""

from __future__ import annotations

import secrets
import uuid

from hami_web.core.placement import Placement
from node_agent.nvml.codes import NvmlCode
from node_agent.nvml.simulated import topology
from node_agent.nvml.simulated.models import ProfileModel
from node_agent.nvml.simulated.state import (
    ComputeInstance,
    Event,
    Gpu,
    GpuInstance,
    Node,
    Process,
)

EVENT_XID = 0x8
EVENT_RECOVERY_ACTION = 0x8000
EVENTS_KEPT = 256
FIRST_HOPPER = 9


class Refusal(Exception):
    """The simulated library refuses, with this NVML code."""

    def __init__(self, code: int) -> None:
        self.code = int(code)
        super().__init__(f"NVML code {self.code}")


def require_mig(gpu: Gpu) -> None:
    """GPU instance calls work with MIG on, and not inside a vGPU guest."""
    if not gpu.mig_current or gpu.vgpu_guest:
        raise Refusal(NvmlCode.NOT_SUPPORTED)


def known_profile(gpu: Gpu, profile_id: int) -> ProfileModel:
    profile = gpu.facts.profile(profile_id)
    if profile is None:
        raise Refusal(NvmlCode.INVALID_ARGUMENT)
    return profile


def create_gpu_instance(
    node: Node, gpu: Gpu, profile_id: int, placement: Placement | None
) -> GpuInstance:
    """At exactly this placement, or where the driver likes with None."""
    require_mig(gpu)
    profile = known_profile(gpu, profile_id)
    if placement and (placement.size != profile.size or placement.start not in profile.starts):
        raise Refusal(NvmlCode.INVALID_ARGUMENT)
    if not gpu.instances and any(each.gi_id is None for each in gpu.processes):
        raise Refusal(NvmlCode.IN_USE)
    chosen = placement or topology.driver_choice(gpu, profile, node.seed)
    free = topology.free_placements(gpu, profile)
    if chosen not in free or topology.remaining_capacity(gpu, profile) < 1:
        raise Refusal(NvmlCode.INSUFFICIENT_RESOURCES)
    instance = GpuInstance(
        topology.gpu_instance_id(gpu, chosen), profile_id, chosen.start, chosen.size
    )
    gpu.instances.append(instance)
    return instance


def destroy_gpu_instance(gpu: Gpu, instance: GpuInstance) -> None:
    require_mig(gpu)
    held = any(each.gi_id == instance.gi_id for each in gpu.processes)
    if instance.compute_instances or held:
        raise Refusal(NvmlCode.IN_USE)
    gpu.instances.remove(instance)


def create_compute_instance(
    node: Node, gpu: Gpu, instance: GpuInstance, profile_id: int, start: int | None = None
) -> ComputeInstance:
    """At this start in compute slices, or at the lowest free one with None."""
    profile = compute_profile(gpu, instance, profile_id)
    if start is not None and start not in profile.starts:
        raise Refusal(NvmlCode.INVALID_ARGUMENT)
    free = topology.free_compute_starts(instance, profile)
    chosen = start if start is not None else next(iter(free), None)
    if chosen is None or chosen not in free:
        raise Refusal(NvmlCode.INSUFFICIENT_RESOURCES)
    ci_id = topology.lowest_free({each.ci_id for each in instance.compute_instances})
    indexes = {ci.index for each in gpu.instances for ci in each.compute_instances}
    compute = ComputeInstance(
        ci_id,
        profile_id,
        chosen,
        profile.compute_slices,
        _new_mig_uuid(node, gpu, instance.gi_id, ci_id),
        topology.lowest_free(indexes),
    )
    instance.compute_instances.append(compute)
    return compute


def destroy_compute_instance(gpu: Gpu, instance: GpuInstance, compute: ComputeInstance) -> None:
    owner = (instance.gi_id, compute.ci_id)
    if any((each.gi_id, each.ci_id) == owner for each in gpu.processes):
        raise Refusal(NvmlCode.IN_USE)
    instance.compute_instances.remove(compute)


def compute_profile(gpu: Gpu, instance: GpuInstance, profile_id: int) -> topology.ComputeProfile:
    """Raise NOT_SUPPORTED for a number that this GPU instance does not offer."""
    gi_profile = known_profile(gpu, instance.profile_id)
    for profile in topology.compute_profiles(gpu.facts, gi_profile):
        if profile.profile_id == profile_id:
            return profile
    raise Refusal(NvmlCode.NOT_SUPPORTED)


def set_mig_mode(node: Node, gpu: Gpu, *, wanted: bool) -> int:
    """The activation status: 0, IN_USE or RESET_REQUIRED. Instances make the call itself fail."""
    if not gpu.facts.mig_capable or gpu.vgpu_guest:
        raise Refusal(NvmlCode.NOT_SUPPORTED)
    if gpu.instances and not wanted:
        raise Refusal(NvmlCode.IN_USE)
    gpu.mig_pending = wanted
    if gpu.mig_current == wanted:
        return NvmlCode.SUCCESS
    if gpu.clients or gpu.processes:
        return NvmlCode.IN_USE
    if gpu.facts.mode_needs_reset:
        if gpu.passthrough or not node.options.ampere_auto_reset:
            return NvmlCode.RESET_REQUIRED
        gpu.attach += 1
    gpu.mig_current = wanted
    return NvmlCode.SUCCESS


def reset_gpu(gpu: Gpu) -> None:
    """Instances go. Ampere takes over the pending mode, later architectures lose the mode."""
    gpu.recovery_action = 0
    gpu.instances.clear()
    gpu.processes.clear()
    gpu.attach += 1
    gpu.mig_current = gpu.mig_pending and gpu.facts.architecture < FIRST_HOPPER
    gpu.mig_pending = gpu.mig_current


def reload_driver(node: Node) -> None:
    """As a reset of every GPU; all NVML sessions end. A GPU that was lost comes back."""
    node.driver_load += 1
    for gpu in node.gpus:
        reset_gpu(gpu)
        gpu.lost = False


def reboot(node: Node) -> None:
    """A driver reload with a new boot id; no client outlives it."""
    reload_driver(node)
    node.boot_id = str(uuid.uuid4())
    node.events.clear()
    for gpu in node.gpus:
        gpu.clients.clear()


def attach_process(gpu: Gpu, process: Process) -> None:
    """Raise NOT_FOUND when the instance it names does not exist."""
    if process.gi_id is not None:
        instance = gpu.instance(process.gi_id)
        if instance is None or (
            process.ci_id is not None
            and process.ci_id not in {each.ci_id for each in instance.compute_instances}
        ):
            raise Refusal(NvmlCode.NOT_FOUND)
    gpu.processes.append(process)


def emit_event(
    node: Node, gpu: Gpu, value: int, instance: tuple[int, int] | None, event_type: int = EVENT_XID
) -> None:
    gi_id, ci_id = instance or (None, None)
    node.events.append(Event(node.next_event, gpu.uuid, event_type, value, gi_id, ci_id))
    node.next_event += 1
    del node.events[:-EVENTS_KEPT]


def _new_mig_uuid(node: Node, gpu: Gpu, gi_id: int, ci_id: int) -> str:
    if node.options.uuids == "legacy":
        return f"MIG-{gpu.uuid}/{gi_id}/{ci_id}"
    if node.options.uuids == "random":
        return f"MIG-{uuid.UUID(bytes=secrets.token_bytes(16), version=5)}"
    return topology.mig_uuid(gpu, gi_id, ci_id)
