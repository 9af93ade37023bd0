"""GPU models the simulator knows, from the package file ``mig-profiles.json``.

The figures come from NVIDIA's MIG user guide, the documentation of nvml.h and listings of
``nvidia-smi`` that users published. A null figure is one that nobody has published; it is filled
here by a stated estimate and the profile is marked ``estimated``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from node_agent.nvml.ports import EngineCounts

# Numbers of nvmlDeviceArchitecture_t in nvml.h.
ARCHITECTURES = {"Ampere": 7, "Ada": 8, "Hopper": 9, "Blackwell": 10}


@dataclass(frozen=True, slots=True)
class ProfileModel:
    """One GPU instance profile of a model; sizes and starts in memory slices, memory in MiB."""

    name: str
    enum: int
    profile_id: int
    memory_mib: int
    compute_slices: int
    multiprocessors: int
    instance_count: int
    engines: EngineCounts
    size: int
    starts: tuple[int, ...]
    estimated: bool


@dataclass(frozen=True, slots=True)
class GpuModel:
    """One GPU model. ``memory_slices`` is 0 where the model cannot do MIG."""

    key: str
    device_name: str
    total_memory_mib: int
    architecture: int
    compute_capability: tuple[int, int]
    memory_slices: int
    compute_slices: int
    max_gpu_instances: int
    mode_needs_reset: bool
    pci_device_id: int
    profiles: tuple[ProfileModel, ...]

    @property
    def mig_capable(self) -> bool:
        return bool(self.profiles)

    def profile(self, profile_id: int) -> ProfileModel | None:
        return next((each for each in self.profiles if each.profile_id == profile_id), None)

    def profile_by_enum(self, enum: int) -> ProfileModel | None:
        return next((each for each in self.profiles if each.enum == enum), None)

    def profile_by_name(self, name: str) -> ProfileModel | None:
        return next((each for each in self.profiles if each.name == name), None)

    def engine_totals(self) -> EngineCounts:
        """Engines of the whole GPU: the most that any one profile has of each kind."""
        engines = [each.engines for each in self.profiles]
        return EngineCounts(
            copy=max(each.copy for each in engines),
            decoder=max(each.decoder for each in engines),
            encoder=max(each.encoder for each in engines),
            jpeg=max(each.jpeg for each in engines),
            ofa=max(each.ofa for each in engines),
        )


@cache
def gpu_models(memory: str = "published") -> dict[str, GpuModel]:
    """All models by key (``a100-sxm4-40gb``).

    ``memory`` is ``published``, or ``variant`` for the memory that other driver versions report of
    the same profiles, where such figures are known.
    """
    text = files(__package__).joinpath("mig-profiles.json").read_text(encoding="utf-8")
    rows = json.loads(text)["gpus"]
    return {each["key"]: _gpu_model(each, variant=memory == "variant") for each in rows}


def _gpu_model(row: dict[str, Any], *, variant: bool) -> GpuModel:
    major, minor = row["cuda_compute_capability"].split(".")
    return GpuModel(
        key=row["key"],
        device_name=row["device_name"],
        total_memory_mib=row["total_memory_mib"],
        architecture=ARCHITECTURES[row["architecture"].split()[0]],
        compute_capability=(int(major), int(minor)),
        memory_slices=row["memory_slices"],
        compute_slices=row["compute_slices"],
        max_gpu_instances=row["max_gpu_instances"],
        mode_needs_reset=row["mig_mode_change_needs_gpu_reset"],
        pci_device_id=int(row["pci_device_id"], 16),
        profiles=tuple(_profile_model(row, each, variant=variant) for each in row["profiles"]),
    )


def _profile_model(gpu: dict[str, Any], row: dict[str, Any], *, variant: bool) -> ProfileModel:
    known = (row["memory_mib"], row["multiprocessors"], row["decoder"])
    return ProfileModel(
        name=row["name"],
        enum=row["enum"],
        profile_id=row["profile_id"],
        memory_mib=_memory_mib(gpu, row, variant=variant),
        compute_slices=row["compute_slices"],
        multiprocessors=row["multiprocessors"] or _estimated_multiprocessors(gpu, row),
        instance_count=row["instance_count"],
        engines=EngineCounts(
            copy=_engine(gpu, row, "copy"),
            decoder=_engine(gpu, row, "decoder"),
            encoder=_engine(gpu, row, "encoder"),
            jpeg=_engine(gpu, row, "jpeg"),
            ofa=_engine(gpu, row, "ofa"),
        ),
        size=row["size"],
        starts=tuple(row["starts"]),
        estimated=None in known,
    )


def _memory_mib(gpu: dict[str, Any], row: dict[str, Any], *, variant: bool) -> int:
    published: int = row["memory_mib"] or _estimated_memory_mib(gpu, row)
    others = [int(each) for each in row.get("memory_mib_variants", ()) if each != published]
    return others[0] if variant and others else published


def _estimated_memory_mib(gpu: dict[str, Any], row: dict[str, Any]) -> int:
    """The share of the memory slices less two percent, in whole 128 MiB as drivers report it."""
    share: int = gpu["total_memory_mib"] * row["size"] * 98 // (gpu["memory_slices"] * 100)
    return share // 128 * 128


def _estimated_multiprocessors(gpu: dict[str, Any], row: dict[str, Any]) -> int:
    """The share of the compute slices, in whole pairs as multiprocessors come."""
    share: int = gpu["sm_full_gpu"] * row["compute_slices"] // gpu["compute_slices"]
    return share // 2 * 2


def _engine(gpu: dict[str, Any], row: dict[str, Any], kind: str) -> int:
    """The published count, else that of the plain one-slice profile times the compute slices."""
    if row[kind] is not None:
        return int(row[kind])
    return int(gpu["profiles"][0][kind] or 0) * int(row["compute_slices"])
