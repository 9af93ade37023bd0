"""Reads of nodes, GPUs and profiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db.models import QuerySet

from hami_web.core.capability import GpuCapability, ProfileCapability
from hami_web.core.placement import Placement
from hami_web.inventory.models import LIVE, Gpu, Profile

_CHUNK = 500
_LISTED = [field.attname for field in Gpu._meta.concrete_fields]  # noqa: SLF001  # Django's documented name


@dataclass(frozen=True, slots=True)
class Figures:
    """Memory slices of a GPU, and MiB of each of its profiles by name."""

    memory_slices: int
    memory_mib: Mapping[str, int]


def profile_figures(uuids: Iterable[str]) -> dict[str, Figures]:
    """What is known of these GPUs, by UUID; two queries for each 500."""
    wanted = sorted(set(uuids))
    found: dict[str, Figures] = {}
    for at in range(0, len(wanted), _CHUNK):
        rows = Gpu.objects.filter(uuid__in=wanted[at : at + _CHUNK]).select_related("profile_set")
        for row in rows.prefetch_related("profile_set__profiles"):
            memory = {p.name: p.memory_mib for p in row.profile_set.profiles.all()}
            found[row.uuid] = Figures(row.memory_slices, memory)
    return found


def live_gpus() -> QuerySet[Gpu]:
    """GPUs that the cluster has, with node, profiles and blocked intervals: three queries."""
    rows = Gpu.objects.filter(LIVE).select_related("node", "profile_set")
    return rows.prefetch_related("profile_set__profiles", "blocked")


def to_profile(profile: Profile) -> ProfileCapability:
    """A profile's row as the core has it."""
    return ProfileCapability(
        profile.name,
        profile.memory_mib,
        profile.core_percent,
        profile.compute_slices,
        tuple(Placement(start, size) for start, size in profile.placements),
        profile.instance_limit,
        profile.attribute,
    )


def listed_gpus() -> QuerySet[Gpu]:
    """The same with nothing but the node's name: one query."""
    return Gpu.objects.filter(LIVE).select_related("node").only(*_LISTED, "node__name")


def profile_names() -> dict[int, list[str]]:
    """Names of profiles by the key of their set, smallest first; one query."""
    found: dict[int, list[str]] = {}
    for key, name in Profile.objects.values_list("profile_set_id", "name"):
        found.setdefault(key, []).append(name)
    return found


def to_capability(gpu: Gpu, profiles: tuple[ProfileCapability, ...] | None = None) -> GpuCapability:
    """A GPU's row as the core has it, with its profiles where the caller has read them."""
    if profiles is None:
        profiles = tuple(map(to_profile, gpu.profile_set.profiles.all()))
    return GpuCapability(
        uuid=gpu.uuid,
        index=gpu.index,
        count=gpu.offered,
        memory_mib=gpu.memory_mib,
        core_percent=gpu.core_percent,
        model=gpu.model,
        numa=gpu.numa,
        mode=gpu.mode,
        profiles=profiles,
        healthy=gpu.healthy,
    )
