"""Signs that something else than this product cuts a node's GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

MIG_MANAGER_LABEL: Final = "nvidia.com/mig.config"
"""Read by NVIDIA's MIG Manager, which cuts all GPUs of the node to what its value names."""
FIXED_RESOURCE: Final = "nvidia.com/mig-"
"""Resources of a device plugin that offers instances which exist already."""
_NAME_LABELS: Final = (
    "app",
    "name",
    "k8s-app",
    "app.kubernetes.io/name",
    "app.kubernetes.io/component",
)
_OPERANDS: Final[Mapping[str, str]] = {
    "nvidia-mig-manager": "MIG Manager",
    "nvidia-device-plugin": "NVIDIA's device plugin",
    "nvidia-device-plugin-ds": "NVIDIA's device plugin",
    "nvidia-device-plugin-daemonset": "NVIDIA's device plugin",
    "nvidia-dra-driver-gpu": "NVIDIA's DRA driver",
    "hami-device-plugin": "HAMi's device plugin",
}
"""Programs by the names that their own manifests, charts and the GPU operator give their Pods."""


def other_owner(labels: Mapping[str, str], resources: Iterable[str]) -> str:
    """The sign in words, or an empty text. ``resources`` are the names of what a node offers."""
    if labels.get(MIG_MANAGER_LABEL):
        return f"label {MIG_MANAGER_LABEL}={labels[MIG_MANAGER_LABEL]} (MIG Manager)"
    offered = sorted(name for name in resources if name.startswith(FIXED_RESOURCE))
    return f"resource {offered[0]} (another device plugin)" if offered else ""


def operand(labels: Mapping[str, str]) -> str:
    """Which program that cuts or offers GPUs a Pod with these labels is, or an empty text."""
    names = (labels.get(key, "") for key in _NAME_LABELS)
    return next((_OPERANDS[name] for name in names if name in _OPERANDS), "")
