"""The cluster's scheduling policy: how placements are chosen, read from the policy file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from hami_web.core import policy_names
from hami_web.core.errors import InvalidPolicy
from hami_web.core.policies import Rule

_SECONDS_MAX: Final = 3600.0
_KEYS: Final[Mapping[str, str]] = {
    "placementPolicy": "placement",
    "nodeSchedulerPolicy": "node",
    "gpuSchedulerPolicy": "gpu",
    "upsize": "upsize",
    "holdSeconds": "hold_seconds",
}


@dataclass(frozen=True, slots=True)
class SchedulingPolicy:
    """How nodes, GPUs and starts are chosen.

    ``placement`` names the policy; ``node`` and ``gpu`` replace its choice of node or GPU, as a
    Pod's own annotations do in turn. ``upsize`` lets a Pod take a larger profile than the
    smallest that satisfies it when that has no free place. ``hold_seconds`` is how long an
    unbound choice stays counted.
    """

    placement: str = policy_names.CAP_LOSS
    node: str | None = None
    gpu: str | None = None
    upsize: bool = False
    hold_seconds: float = 60.0

    def rule(self, node: str | None = None, gpu: str | None = None) -> Rule:
        """The rule for one Pod, given what its annotations ask for."""
        return Rule(node=node or self.node or self.placement, gpu=gpu or self.gpu or self.placement)


def parse_scheduling_policy(document: object, where: str = "scheduling") -> SchedulingPolicy:
    """Check a mapping as read from YAML or JSON; an absent section means the defaults.

    Raises :class:`InvalidPolicy` naming the field, the value and what is allowed.
    """
    if document is None:
        return SchedulingPolicy()
    if not isinstance(document, dict):
        raise InvalidPolicy(where, document, "a mapping")
    section = cast(dict[object, object], document)
    for key in section:
        if key not in _KEYS:
            raise InvalidPolicy(f"{where}.{key}", section[key], f"only {', '.join(_KEYS)}")
    default = SchedulingPolicy()
    return SchedulingPolicy(
        placement=_name(section, "placementPolicy", where, policy_names.PLACEMENT_POLICIES)
        or default.placement,
        node=_name(section, "nodeSchedulerPolicy", where, policy_names.NODE_POLICIES),
        gpu=_name(section, "gpuSchedulerPolicy", where, policy_names.GPU_POLICIES),
        upsize=_flag(section, "upsize", where),
        hold_seconds=_seconds(section, "holdSeconds", where, default.hold_seconds),
    )


def _name(
    section: Mapping[object, object], key: str, where: str, allowed: tuple[str, ...]
) -> str | None:
    value = section.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or value not in allowed:
        raise InvalidPolicy(f"{where}.{key}", value, ", ".join(allowed))
    return value


def _flag(section: Mapping[object, object], key: str, where: str) -> bool:
    value = section.get(key, False)
    if not isinstance(value, bool):
        raise InvalidPolicy(f"{where}.{key}", value, "true or false")
    return value


def _seconds(section: Mapping[object, object], key: str, where: str, default: float) -> float:
    value = section.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidPolicy(f"{where}.{key}", value, "a number of seconds")
    if not 1 <= value <= _SECONDS_MAX:
        raise InvalidPolicy(f"{where}.{key}", value, f"1…{_SECONDS_MAX:g} seconds")
    return float(value)
