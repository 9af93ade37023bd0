"""Capabilities of real boards, from the figures that the simulated library reports."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

from hami_web.core.capability import GpuCapability, ProfileCapability
from hami_web.core.placement import Placement

_MODELS = Path(__file__).parents[1] / "node_agent/nvml/simulated/mig-profiles.json"

PLAIN_A100 = ("1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb")
ALLOWED_A100 = ("1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb")


@cache
def _boards() -> dict[str, dict[str, object]]:
    return {board["key"]: board for board in json.loads(_MODELS.read_text())["gpus"]}


@cache
def profiles_of(key: str) -> tuple[ProfileCapability, ...]:
    """Every profile of a board that has placements."""
    listed = [item for item in _boards()[key]["profiles"] if item["starts"]]  # type: ignore[attr-defined]
    full = max(item["multiprocessors"] for item in listed)
    return tuple(
        ProfileCapability(
            name=item["name"],
            memory_mib=item["memory_mib"],
            core_percent=math.ceil(100 * item["multiprocessors"] / full),
            compute_slices=item["compute_slices"],
            placements=tuple(Placement(start, item["size"]) for start in item["starts"]),
            instance_limit=item["instance_count"],
            attribute=_attribute(item["name"]),
        )
        for item in listed
    )


def board(
    key: str = "a100-sxm4-40gb",
    uuid: str = "GPU-0",
    index: int = 0,
    *,
    names: tuple[str, ...] | None = None,
    numa: int = 0,
) -> GpuCapability:
    """One GPU; by default with all plain profiles of its board, or with the named ones."""
    facts = _boards()[key]
    profiles = tuple(
        profile
        for profile in profiles_of(key)
        if (profile.name in names if names is not None else not profile.attribute)
    )
    return GpuCapability(
        uuid=uuid,
        index=index,
        count=7,
        memory_mib=int(str(facts["total_memory_mib"])),
        core_percent=100,
        model=str(facts["device_name"]),
        numa=numa,
        mode="mig",
        profiles=profiles,
        healthy=True,
    )


def _attribute(name: str) -> str:
    return next((name[at:] for at, character in enumerate(name) if character in "+-"), "")
