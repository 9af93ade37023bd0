"""Reads of nodes, GPUs and profiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hami_web.inventory.models import Gpu

_CHUNK = 500


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
