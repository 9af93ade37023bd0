"""Names of GPU instance profiles, for drivers that do not report them.

The rule reproduces every name in NVIDIA's MIG user guide and in published listings: the memory part
is the profile's share of the GPU in eighths, rounded up, times the GPU's memory in GiB, rounded up,
the product rounded half up.
"""

from __future__ import annotations

import math
from fractions import Fraction

# Suffix by NVML_GPU_INSTANCE_PROFILE_* number (nvml.h): REV1, GFX, NO_ME and ALL_ME variants.
ATTRIBUTES: dict[int, str] = {
    7: "+me",
    8: "+me",
    10: "+gfx",
    11: "+gfx",
    12: "+gfx",
    13: "-me",
    14: "-me",
    15: "+me.all",
    16: "+me.all",
    17: "+gfx",
}
NVML_NAME_PREFIX = "MIG "


def profile_attribute(enum: int) -> str:
    """``""`` for a plain profile, else the suffix that its name carries."""
    return ATTRIBUTES.get(enum, "")


def derived_profile_name(
    enum: int, compute_slices: int, memory_mib: int, total_memory_mib: int
) -> str:
    """The name NVML would give, from the figures of the profile and of the GPU, both in MiB."""
    eighths = math.ceil(Fraction(memory_mib * 8, total_memory_mib))
    gib = Fraction(eighths, 8) * math.ceil(Fraction(total_memory_mib, 1024))
    return f"{compute_slices}g.{math.floor(gib + Fraction(1, 2))}gb{profile_attribute(enum)}"


def plain_profile_name(reported: str) -> str:
    """``1g.5gb`` from NVML's ``MIG 1g.5gb``."""
    return reported.removeprefix(NVML_NAME_PREFIX).strip()
