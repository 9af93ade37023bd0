"""Signs that something else than this product cuts a node's GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

MIG_MANAGER_LABEL: Final = "nvidia.com/mig.config"
"""Read by NVIDIA's MIG Manager, which cuts all GPUs of the node to what its value names."""
FIXED_RESOURCE: Final = "nvidia.com/mig-"
"""Resources of a device plugin that offers instances which exist already."""


def other_owner(labels: Mapping[str, str], resources: Iterable[str]) -> str:
    """The sign in words, or an empty text. ``resources`` are the names of what a node offers."""
    if labels.get(MIG_MANAGER_LABEL):
        return f"label {MIG_MANAGER_LABEL}={labels[MIG_MANAGER_LABEL]} (MIG Manager)"
    offered = sorted(name for name in resources if name.startswith(FIXED_RESOURCE))
    return f"resource {offered[0]} (another device plugin)" if offered else ""
