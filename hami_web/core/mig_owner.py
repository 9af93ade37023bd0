"""Signs that something else than this product cuts, or offers, a node's GPUs.

Two kinds are told apart. Whoever may *change* the MIG layout (MIG Manager, a device plugin of HAMi,
NVIDIA's DRA driver) and we must never work on one card at a time: while such a sign stands, nothing
is made, destroyed or placed there. Whoever only *offers* instances that exist is named, and idle
GPUs of its node are not cleaned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

MIG_MANAGER_LABEL: Final = "nvidia.com/mig.config"
"""Read by NVIDIA's MIG Manager, which cuts all GPUs of the node to what its value names; a value
such as ``all-disabled`` is an order to it as well."""
MIG_STATE_LABEL: Final = "nvidia.com/mig.config.state"
"""What MIG Manager says of its work; ``success`` and ``failed`` are left from work that is over."""
MIG_STATES_AT_WORK: Final = ("pending", "rebooting")
DEPLOY_LABELS: Final = "nvidia.com/gpu.deploy."
"""Labels by which the GPU Operator deploys its operands, one for each."""
PAUSED: Final = "paused-for-mig-change"
"""Their value while MIG Manager changes the layout, or since it stopped in the middle of that."""
FIXED_RESOURCE: Final = "nvidia.com/mig-"
"""Resources of a device plugin that offers instances which exist already."""
_MIG_MANAGER: Final = "MIG Manager"
_HAMI_PLUGIN: Final = "HAMi's device plugin"
_DRA_DRIVER: Final = "NVIDIA's DRA driver"
_NAME_LABELS: Final = (
    "app",
    "name",
    "k8s-app",
    "app.kubernetes.io/name",
    "app.kubernetes.io/component",
)
_OPERANDS: Final[Mapping[str, str]] = {
    "nvidia-mig-manager": _MIG_MANAGER,
    "nvidia-device-plugin": "NVIDIA's device plugin",
    "nvidia-device-plugin-ds": "NVIDIA's device plugin",
    "nvidia-device-plugin-daemonset": "NVIDIA's device plugin",
    "nvidia-dra-driver-gpu": _DRA_DRIVER,
    "hami-device-plugin": _HAMI_PLUGIN,
}
"""Programs by the names that their own manifests, charts and the GPU operator give their Pods."""
_CUTTERS: Final = frozenset({_MIG_MANAGER, _HAMI_PLUGIN, _DRA_DRIVER})
_BY_ITS_CONTROLLER: Final = "stop it by its controller (not by deleting the Pod)"


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign that something else may change the MIG layout, and how to take it away."""

    text: str
    mend: str

    def __str__(self) -> str:
        return f"something else may change the MIG layout: {self.text}; {self.mend}"


def sign_on_node(labels: Mapping[str, str], told: str = "") -> Sign | None:
    """The sign that a node itself carries; ``told`` is what its agent publishes of its Pods."""
    config = labels.get(MIG_MANAGER_LABEL)
    if config:
        mend = f"stop MIG Manager by its controller, then remove the label {MIG_MANAGER_LABEL}"
        return Sign(f"label {MIG_MANAGER_LABEL}={config} ({_MIG_MANAGER})", mend)
    state = labels.get(MIG_STATE_LABEL, "")
    if state in MIG_STATES_AT_WORK:
        mend = "let MIG Manager finish, or stop it and remove the label"
        return Sign(f"label {MIG_STATE_LABEL}={state} ({_MIG_MANAGER} at work)", mend)
    paused = min((key for key, value in labels.items() if is_paused(key, value)), default=None)
    if paused is not None:
        mend = "let MIG Manager finish, or stop it and set the label back to true"
        return Sign(f"label {paused}={PAUSED} ({_MIG_MANAGER} at work)", mend)
    return Sign(told, _BY_ITS_CONTROLLER) if told else None


def sign_of_program(pod: str, labels: Mapping[str, str]) -> Sign | None:
    """The sign that a Pod is whose program may change the layout; ``pod`` is its full name."""
    program = operand(labels)
    return Sign(f"Pod {pod} ({program})", _BY_ITS_CONTROLLER) if program in _CUTTERS else None


LEGACY_CAPABILITY: Final = Sign(
    "its capability is published as migtemplate (HAMi's device plugin before 2.10)",
    "take the node out of that plugin's node selector",
)


def is_paused(key: str, value: str) -> bool:
    """Whether a label says that an operand makes room for a change of the layout."""
    return value == PAUSED and key.startswith(DEPLOY_LABELS)


def fixed_resources(quantities: Mapping[str, str | int]) -> list[str]:
    """Resources for instances that exist already, sorted.

    Without the zeros: the kubelet keeps the name of a resource after its plugin is gone.
    """
    return sorted(
        name
        for name, quantity in quantities.items()
        if name.startswith(FIXED_RESOURCE) and str(quantity) != "0"
    )


def other_owner(
    labels: Mapping[str, str], quantities: Mapping[str, str | int], told: str = ""
) -> str:
    """Either kind of sign on a node, or an empty text. ``quantities`` are what the node offers."""
    sign = sign_on_node(labels, told)
    if sign is not None:
        return sign.text
    offered = fixed_resources(quantities)
    return f"resource {offered[0]} (another device plugin)" if offered else ""


def operand(labels: Mapping[str, str]) -> str:
    """Which program that cuts or offers GPUs a Pod with these labels is, or an empty text."""
    names = (labels.get(key, "") for key in _NAME_LABELS)
    return next((_OPERANDS[name] for name in names if name in _OPERANDS), "")
