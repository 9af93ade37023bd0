"""A drain plan as it is sent: Pods that the caller may not see have no names."""

from __future__ import annotations

from collections.abc import Callable

from hami_web.core.placement import Placement
from hami_web.core.visible import UNAVAILABLE
from hami_web.planning.commands import commands_of
from hami_web.planning.drain import MOVED, DrainAnswer, GpuChange, Interval, Move
from hami_web.scheduling.records import Claim

Sees = Callable[[str], bool]


def document_of(answer: DrainAnswer, sees: Sees) -> dict[str, object]:
    """Moves, placements and maps."""
    return {
        "exact": answer.exact,
        "placements": [_spot(*item) for item in answer.placements],
        "moves": [_move(item, sees) for item in answer.moves],
        "leaving": [{**_held(claim, sees), **_names(claim, sees)} for claim in answer.leaving],
        "gpus": [_change(item, sees) for item in answer.changes],
        "commands": list(commands_of(answer, sees)),
    }


def _move(item: Move, sees: Sees) -> dict[str, object]:
    pod = item.claims[0].pod
    return {
        **_names(item.claims[0], sees),
        "node": item.node,
        "priority": pod.priority if sees(pod.namespace) else None,
        "reservations": [_held(claim, sees) for claim in item.claims],
        "homes": [_spot(*home) for home in item.homes],
    }


def _change(item: GpuChange, sees: Sees) -> dict[str, object]:
    return {
        "node": item.node,
        "gpu_uuid": item.gpu_uuid,
        "before": [_interval(interval, sees) for interval in item.before],
        "after": [_interval(interval, sees) for interval in item.after],
    }


def _interval(item: Interval, sees: Sees) -> dict[str, object]:
    extent = _extent(item.placement)
    if item.claim is None:
        return {**extent, "state": item.state, "profile": item.profile, "namespace": "", "pod": ""}
    visible = sees(item.claim.pod.namespace)
    state = item.state if visible or item.state == MOVED else UNAVAILABLE
    profile = item.profile if visible else UNAVAILABLE
    return {**extent, "state": state, "profile": profile, **_names(item.claim, sees)}


def _names(claim: Claim, sees: Sees) -> dict[str, object]:
    visible = sees(claim.pod.namespace)
    return {
        "namespace": claim.pod.namespace if visible else UNAVAILABLE,
        "pod": claim.pod.name if visible else UNAVAILABLE,
    }


def _held(claim: Claim, sees: Sees) -> dict[str, object]:
    item = claim.reservation
    profile = item.profile if sees(claim.pod.namespace) else UNAVAILABLE
    return {"gpu_uuid": item.gpu_uuid, "profile": profile, **_extent(item.placement)}


def _spot(node: str, uuid: str, placement: Placement) -> dict[str, object]:
    return {"node": node, "gpu_uuid": uuid, **_extent(placement)}


def _extent(placement: Placement) -> dict[str, object]:
    return {"start": placement.start, "size": placement.size}
