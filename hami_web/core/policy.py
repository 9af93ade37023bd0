"""The cluster's scheduling policy: how placements are chosen, read from the policy file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from hami_web.core import annotations as keys
from hami_web.core import policy_names as names
from hami_web.core.errors import InvalidField, InvalidPolicy, InvalidRequest
from hami_web.core.hami import EVEN_WEIGHTS, HamiRule, Weights, parse_weights
from hami_web.core.policies import Rule
from hami_web.core.request import PodRequest

_SECONDS_MAX: Final = 3600.0
_PLACEMENT: Final = "placementPolicy"
_NODE: Final = "nodeSchedulerPolicy"
_GPU: Final = "gpuSchedulerPolicy"
_UPSIZE: Final = "upsize"
_SECONDS: Final = "holdSeconds"
_WEIGHTS: Final = "deviceScoringWeights"
_KEYS: Final = (_PLACEMENT, _NODE, _GPU, _UPSIZE, _SECONDS, _WEIGHTS)


@dataclass(frozen=True, slots=True)
class SchedulingPolicy:
    """How nodes, GPUs and starts are chosen.

    ``placement`` names the policy; ``node`` and ``gpu`` replace its choice of node or GPU, as a
    Pod's own annotations do in turn. ``upsize`` lets a Pod take a larger profile than the
    smallest that satisfies it when that has no free place. ``hold_seconds`` is how long an
    unbound choice stays counted. ``weights`` matter to HAMi's rule only.
    """

    placement: str = names.CAP_LOSS
    node: str | None = None
    gpu: str | None = None
    upsize: bool = False
    hold_seconds: float = 60.0
    weights: Weights = EVEN_WEIGHTS

    def rule_for(self, request: PodRequest) -> Rule | HamiRule:
        """The rule for one Pod. Raises :class:`InvalidRequest` for what its annotations name."""
        if request.node_policy is not None:
            _check_node(self.placement, request.node_policy, keys.POD_NODE_POLICY, InvalidRequest)
        if request.gpu_policy is not None:
            _check_gpu(self.placement, request.gpu_policy, keys.POD_GPU_POLICY, InvalidRequest)
        weights = self.weights
        if request.weights is not None:
            weights = parse_weights(request.weights, keys.POD_DEVICE_WEIGHTS)
        node = request.node_policy or self.node
        gpu = request.gpu_policy or self.gpu
        if self.placement == names.HAMI:
            words = _words(gpu or names.SPREAD)
            return HamiRule(node or names.BINPACK, words, weights)
        return Rule(node=node or self.placement, gpu=gpu or self.placement)


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
    placement = _text(section, _PLACEMENT, where) or default.placement
    if placement not in names.PLACEMENT_POLICIES:
        allowed = ", ".join(names.PLACEMENT_POLICIES)
        raise InvalidPolicy(f"{where}.{_PLACEMENT}", placement, allowed)
    node, gpu = _text(section, _NODE, where), _text(section, _GPU, where)
    if node is not None:
        _check_node(placement, node, f"{where}.{_NODE}", InvalidPolicy)
    if gpu is not None:
        _check_gpu(placement, gpu, f"{where}.{_GPU}", InvalidPolicy)
    return SchedulingPolicy(
        placement=placement,
        node=node,
        gpu=gpu,
        upsize=_flag(section, _UPSIZE, where),
        hold_seconds=_seconds(section, _SECONDS, where, default.hold_seconds),
        weights=_weights(section, where, default.weights),
    )


def _check_node(placement: str, value: str, where: str, error: type[InvalidField]) -> None:
    allowed = names.HAMI_NODE_POLICIES if placement == names.HAMI else names.RULES
    if value not in allowed:
        raise error(where, value, ", ".join(allowed))


def _check_gpu(placement: str, value: str, where: str, error: type[InvalidField]) -> None:
    if placement != names.HAMI:
        if value not in names.RULES:
            only = f"{', '.join(names.RULES)} while {_PLACEMENT} is {placement}"
            raise error(where, value, only)
        return
    words = _words(value)
    several = len(words) > 1
    for word in words:
        if word not in names.HAMI_GPU_POLICIES or (several and word == names.TOPOLOGY):
            allowed = ", ".join(names.HAMI_GPU_POLICIES)
            raise error(where, value, f"{allowed}, or a list of all but the last")


def _words(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


def _text(section: Mapping[object, object], key: str, where: str) -> str | None:
    value = section.get(key)
    if value is not None and not isinstance(value, str):
        raise InvalidPolicy(f"{where}.{key}", value, "a name")
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


def _weights(section: Mapping[object, object], where: str, default: Weights) -> Weights:
    text = _text(section, _WEIGHTS, where)
    if text is None:
        return default
    try:
        return parse_weights(text, f"{where}.{_WEIGHTS}")
    except InvalidRequest as error:
        raise InvalidPolicy(error.field, error.value, error.allowed) from error
