"""Profiles as NVML reports them: by number, with the older call where the newer is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from node_agent.nvml.binding import (
    CI_PROFILE_NUMBERS,
    GI_PROFILE_NUMBERS,
    SHARED_ENGINES,
    call_nvml,
    possible_placements,
)
from node_agent.nvml.codes import NvmlCode
from node_agent.nvml.naming import derived_profile_name, plain_profile_name, profile_attribute
from node_agent.nvml.ports import (
    DriverInvalidArgument,
    DriverNotSupported,
    DriverProfile,
    EngineCounts,
)

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ReportedProfile:
    """What the profile call says, before placements. ``name`` is None from an old driver."""

    enum: int
    profile_id: int
    memory_mib: int
    compute_slices: int
    multiprocessors: int
    instance_count: int
    engines: EngineCounts
    name: str | None


@dataclass(frozen=True, slots=True)
class ReportedComputeProfile:
    """A compute instance profile of one GPU instance."""

    profile_id: int
    multiprocessors: int
    instance_count: int


def reported_profiles(device: Any) -> tuple[ReportedProfile, ...]:
    """Every profile the GPU supports, by number; numbers it lacks are left out."""
    found = []
    for enum in GI_PROFILE_NUMBERS:
        try:
            info = _newest("nvmlDeviceGetGpuInstanceProfileInfo", device, enum)
        except (DriverNotSupported, DriverInvalidArgument):
            continue
        found.append(_reported(enum, info))
    return tuple(found)


def _newest(function: str, *arguments: Any) -> Any:
    """The second version of a profile call, the first where the driver lacks it."""
    try:
        return call_nvml(function, *arguments, 2)
    except DriverNotSupported as error:
        if error.code != NvmlCode.FUNCTION_NOT_FOUND:
            raise
    return call_nvml(function, *arguments, 1)


def _reported(enum: int, info: Any) -> ReportedProfile:
    name = getattr(info, "name", None)
    return ReportedProfile(
        enum=enum,
        profile_id=int(info.id),
        memory_mib=int(info.memorySizeMB),
        compute_slices=int(info.sliceCount),
        multiprocessors=int(info.multiprocessorCount),
        instance_count=int(info.instanceCount),
        engines=EngineCounts(
            copy=int(info.copyEngineCount),
            decoder=int(info.decoderCount),
            encoder=int(info.encoderCount),
            jpeg=int(info.jpegCount),
            ofa=int(info.ofaCount),
        ),
        name=plain_profile_name(_text(name)) if name else None,
    )


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def usable_profiles(device: Any) -> tuple[DriverProfile, ...]:
    """Profiles with placements, by number.

    Where several numbers share a name and a size, the lowest stands for all of them: it is the
    original profile, the others are later revisions of it.
    """
    chosen: dict[tuple[str, int], DriverProfile] = {}
    for reported in reported_profiles(device):
        try:
            placements = possible_placements(device, reported.profile_id)
        except (DriverNotSupported, DriverInvalidArgument):
            continue
        if placements:
            name = reported.name or _derived_name(device, reported)
            profile = DriverProfile(
                name=name,
                profile_id=reported.profile_id,
                enum=reported.enum,
                attribute=profile_attribute(reported.enum),
                memory_mib=reported.memory_mib,
                compute_slices=reported.compute_slices,
                multiprocessors=reported.multiprocessors,
                instance_count=reported.instance_count,
                engines=reported.engines,
                placements=placements,
            )
            chosen.setdefault((name, placements[0].size), profile)
    return tuple(chosen.values())


def _derived_name(device: Any, profile: ReportedProfile) -> str:
    total_mib = int(call_nvml("nvmlDeviceGetMemoryInfo", device).total) // MIB
    return derived_profile_name(profile.enum, profile.compute_slices, profile.memory_mib, total_mib)


def compute_profiles(gpu_instance: Any) -> Iterator[ReportedComputeProfile]:
    """Compute instance profiles that a GPU instance offers, by number."""
    for number in CI_PROFILE_NUMBERS:
        try:
            info = _newest(
                "nvmlGpuInstanceGetComputeInstanceProfileInfo",
                gpu_instance,
                number,
                SHARED_ENGINES,
            )
        except (DriverNotSupported, DriverInvalidArgument):
            continue
        yield ReportedComputeProfile(
            int(info.id), int(info.multiprocessorCount), int(info.instanceCount)
        )


def whole_compute_profile(gpu_instance: Any, multiprocessors: int) -> int:
    """Profile id of the compute instance that uses all multiprocessors of the GPU instance.

    The one with exactly as many; if none has, the largest. Several ids can be equally large: the
    lowest is taken, revisions have higher ones. Raise :class:`DriverNotSupported` for none at all.
    """
    offered = tuple(compute_profiles(gpu_instance))
    exact = [each for each in offered if each.multiprocessors == multiprocessors]
    if exact:
        return exact[0].profile_id
    if not offered:
        raise DriverNotSupported(
            NvmlCode.NOT_SUPPORTED,
            "nvmlGpuInstanceGetComputeInstanceProfileInfo",
            "the GPU instance offers no compute instance profile",
        )
    return max(offered, key=lambda each: each.multiprocessors).profile_id
