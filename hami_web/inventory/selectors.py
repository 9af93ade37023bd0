"""Reads of nodes, GPUs and profiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Prefetch, Q, QuerySet

from hami_web.core.capability import GpuCapability, ProfileCapability
from hami_web.core.placement import Placement
from hami_web.inventory.models import LIVE, BlockedState, Gpu, GpuState, NodeState, Profile

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


def nodes_at(moment: datetime) -> QuerySet[NodeState]:
    """Nodes as they were at a moment, with ``name`` and ``changed_at``: one query."""
    rows = NodeState.objects.filter(_open_at(moment))
    return rows.annotate(name=F("node__name"), changed_at=F("began_at")).order_by("name")


def gpus_at(moment: datetime) -> QuerySet[GpuState]:
    """GPUs as they were at a moment, with node and ``blocked``, which is a list: two queries."""
    rows = GpuState.objects.filter(_open_at(moment)).select_related("gpu", "node")
    facts = {name: F(f"gpu__{name}") for name in ("uuid", "model", "memory_mib", "numa")}
    blocked = Prefetch(
        "gpu__blocked_states",
        BlockedState.objects.filter(_open_at(moment)),
        to_attr="blocked_then",
    )
    rows = rows.annotate(changed_at=F("began_at"), node_name=F("node__name"), **facts)
    return rows.prefetch_related(blocked)


def _open_at(moment: datetime) -> Q:
    return Q(began_at__lte=moment) & (Q(ended_at__isnull=True) | Q(ended_at__gt=moment))


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


def listed_gpus() -> QuerySet[Gpu, Any]:
    """The same for a list: named tuples of all columns, and ``node_name``; one query."""
    rows = Gpu.objects.filter(LIVE).annotate(node_name=F("node__name"))
    return rows.values_list(*_LISTED, "node_name", named=True)


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
