"""The rules of the hardware: which ids, placements and compute instances a GPU allows.

Pure functions over a GPU's state. Sources: NVIDIA's open kernel modules for ids and UUIDs (they
follow the memory span, in two maps), the MIG user guide and published listings for the rest.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass

from hami_web.core.placement import Placement
from node_agent.nvml.simulated.models import GpuModel, ProfileModel
from node_agent.nvml.simulated.state import Gpu, GpuInstance

MAX_COMPUTE_INSTANCES = 8
_UUID_NAMESPACE = uuid.UUID("5f3a1c52-7a1e-5d0c-9f54-6a1d3c0b7e11")
# Compute slices of NVML_COMPUTE_INSTANCE_PROFILE_* by number; 7 is 1_SLICE_REV1.
_PLAIN_COMPUTE_PROFILES = {0: 1, 1: 2, 2: 3, 3: 4, 4: 7}
_COMPUTE_PROFILE_REV1 = 7
MEDIA_ENGINES = ("decoder", "encoder", "jpeg", "ofa")


@dataclass(frozen=True, slots=True)
class ComputeProfile:
    """A compute instance profile inside one GPU instance; starts in compute slices."""

    profile_id: int
    compute_slices: int
    multiprocessors: int
    instance_count: int
    starts: tuple[int, ...]


def gpu_instance_id(gpu: Gpu, placement: Placement) -> int:
    """Whole 0, halves 1-2, quarters 3-6, eighths 7-14; the swapped map counts from the middle."""
    grid = gpu.facts.memory_slices
    parts = 1
    while parts * 2 * placement.size <= grid:
        parts *= 2
    start = placement.start
    if gpu.id_map == "swapped":
        start = (start + grid // 2) % grid
    return parts - 1 + start // placement.size


def mig_uuid(gpu: Gpu, gi_id: int, slot: int) -> str:
    """A version 5 UUID: the same GPU, GI id and slot give the same, also after a recreate."""
    return f"MIG-{uuid.uuid5(_UUID_NAMESPACE, f'{gpu.uuid}/{gi_id}/{slot}')}"


def seeded_gpu_uuid(seed: str, position: int, model: str) -> str:
    return f"GPU-{uuid.uuid5(_UUID_NAMESPACE, f'{seed}/{position}/{model}')}"


def placement_of(instance: GpuInstance) -> Placement:
    return Placement(instance.start, instance.size)


def free_placements(gpu: Gpu, profile: ProfileModel) -> tuple[Placement, ...]:
    """Legal placements of the profile that no instance overlaps, by start."""
    taken = [placement_of(each) for each in gpu.instances]
    legal = (Placement(start, profile.size) for start in profile.starts)
    return tuple(each for each in legal if not any(each.overlaps(other) for other in taken))


def remaining_capacity(gpu: Gpu, profile: ProfileModel) -> int:
    """Most pairwise disjoint free placements, within the engines and the profile's own limit."""
    disjoint, end = 0, 0
    for placement in free_placements(gpu, profile):
        if placement.start >= end:
            disjoint, end = disjoint + 1, placement.end
    existing = sum(each.profile_id == profile.profile_id for each in gpu.instances)
    return min(disjoint, profile.instance_count - existing, _engine_capacity(gpu, profile))


def _engine_capacity(gpu: Gpu, profile: ProfileModel) -> int:
    """How many more fit the media engines: why one ``+me`` fits, and only ``-me`` beside all."""
    totals, capacity = gpu.facts.engine_totals(), profile.instance_count
    for kind in MEDIA_ENGINES:
        each = getattr(profile.engines, kind)
        if each:
            used = sum(_engines_of(gpu.facts, other, kind) for other in gpu.instances)
            capacity = min(capacity, max(0, getattr(totals, kind) - used) // each)
    return capacity


def _engines_of(model: GpuModel, instance: GpuInstance, kind: str) -> int:
    profile = model.profile(instance.profile_id)
    return 0 if profile is None else int(getattr(profile.engines, kind))


def driver_choice(gpu: Gpu, profile: ProfileModel, seed: str) -> Placement | None:
    """The placement taken when none is asked for: seeded, and not the first of several."""
    free = free_placements(gpu, profile)
    if len(free) < 2:
        return free[0] if free else None
    digest = hashlib.sha256(f"{seed}/{gpu.uuid}/{profile.profile_id}/{free}".encode()).digest()
    return free[1 + digest[0] % (len(free) - 1)]


def compute_profiles(model: GpuModel, gi_profile: ProfileModel) -> tuple[ComputeProfile, ...]:
    """Compute instance profiles that a GPU instance of this profile offers, by number."""
    slices = gi_profile.compute_slices
    plain = {each.enum: each for each in model.profiles if each.enum in _PLAIN_COMPUTE_PROFILES}
    found = [
        _compute_profile(number, size, slices, plain[number].multiprocessors)
        for number, size in _PLAIN_COMPUTE_PROFILES.items()
        if size <= slices and number in plain
    ]
    if found and gi_profile.multiprocessors > found[-1].multiprocessors and slices == 1:
        found.append(_compute_profile(_COMPUTE_PROFILE_REV1, 1, 1, gi_profile.multiprocessors))
    return tuple(found)


def _compute_profile(number: int, size: int, slices: int, multiprocessors: int) -> ComputeProfile:
    starts = tuple(range(0, slices - size + 1, size))
    return ComputeProfile(number, size, multiprocessors, len(starts), starts)


def free_compute_starts(instance: GpuInstance, profile: ComputeProfile) -> tuple[int, ...]:
    """Starts, in compute slices, where the profile still fits into the GPU instance."""
    taken = [Placement(each.start, each.size) for each in instance.compute_instances]
    return tuple(
        start
        for start in profile.starts
        if not any(Placement(start, profile.compute_slices).overlaps(other) for other in taken)
    )


def compute_profile_name(gi_profile: ProfileModel, profile: ComputeProfile) -> str:
    """The GPU instance's name, with the compute slices in front where they are fewer."""
    if profile.compute_slices == gi_profile.compute_slices:
        return gi_profile.name
    return f"{profile.compute_slices}c.{gi_profile.name}"


def lowest_free(used: set[int]) -> int:
    """The lowest number of 0 and up that is not used: ids are reused as soon as they are free."""
    return next(number for number in range(len(used) + 1) if number not in used)
