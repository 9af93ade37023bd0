"""From the body of a what-if to the question, and from its answer to what is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from hami_web.core import annotations as keys
from hami_web.core.request import ContainerSpec, parse_pod_request
from hami_web.core.visible import UNAVAILABLE
from hami_web.core.whatif import Smaller
from hami_web.planning.whatif import Answer, InTheWay, Obstacle, Question, Suggestion
from hami_web.scheduling.records import Claim

Sees = Callable[[str], bool]
"""Whether the caller may see what lies in a namespace."""
_NAMES: Final = 20
"""Nodes named for one reason."""
_RESOURCES: Final = {
    "devices": keys.RESOURCE_COUNT,
    "memory_mib": keys.RESOURCE_MEMORY,
    "memory_percent": keys.RESOURCE_MEMORY_PERCENTAGE,
    "cores": keys.RESOURCE_CORES,
}
_ANNOTATIONS: Final = {
    "profile": keys.POD_PROFILE,
    "use_types": keys.POD_USE_GPU_TYPE,
    "nouse_types": keys.POD_NOUSE_GPU_TYPE,
    "use_uuids": keys.POD_USE_GPU_UUID,
    "nouse_uuids": keys.POD_NOUSE_GPU_UUID,
    "node_policy": keys.POD_NODE_POLICY,
    "gpu_policy": keys.POD_GPU_POLICY,
}


def question_of(values: Mapping[str, Any]) -> Question:
    """The question of a checked body, read as the manifest of a Pod. Raises InvalidRequest."""
    containers = [
        ContainerSpec(f"containers[{number}]", _limits(asked))
        for number, asked in enumerate(values.get("containers") or [values])
    ]
    annotations = {
        key: ",".join(value) if isinstance(value, list) else value
        for name, key in _ANNOTATIONS.items()
        if (value := values.get(name))
    }
    if values["numa_bind"]:
        annotations[keys.POD_NUMA_BIND] = "true"
    nodes = values.get("nodes")
    return Question(
        parse_pod_request(containers, annotations),
        values["count"],
        None if nodes is None else frozenset(nodes),
    )


def document_of(answer: Answer, *, candidates: int, sees: Sees) -> dict[str, object]:
    """What is sent; ``candidates`` bounds the nodes that are listed."""
    return {
        "fits": answer.obstacle is None,
        "placed": [_suggestion(item) for item in answer.placed],
        "candidates_total": len(answer.candidates),
        "candidates": [_suggestion(item) for item in answer.candidates[:candidates]],
        "obstacle": None if answer.obstacle is None else _obstacle(answer.obstacle, sees),
    }


def _limits(asked: Mapping[str, Any]) -> dict[str, str | int]:
    return {key: asked[name] for name, key in _RESOURCES.items() if name in asked}


def _suggestion(item: Suggestion) -> dict[str, object]:
    devices = [
        {
            "container": place.container_index,
            "device": place.device_index,
            "gpu_uuid": place.gpu_uuid,
            "profile": place.profile,
            "start": place.placement.start,
            "size": place.placement.size,
        }
        for place in item.choice.reservations
    ]
    return {"node": item.node, "devices": devices}


def _obstacle(item: Obstacle, sees: Sees) -> dict[str, object]:
    by_size = sorted(item.nodes.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return {
        "reasons": [_reason(code, names) for code, names in by_size],
        "blockers": None if item.in_the_way is None else _blockers(item.in_the_way, sees),
        "smaller": None if item.smaller is None else _smaller(item.smaller),
        "fragmented": item.fragmented,
    }


def _reason(code: str, names: Sequence[str]) -> dict[str, object]:
    return {"code": code, "nodes": len(names), "names": list(names[:_NAMES])}


def _blockers(item: InTheWay, sees: Sees) -> dict[str, object]:
    found = item.blockers
    return {
        "node": found.node,
        "gpu_uuid": found.gpu_uuid,
        "profile": found.profile or None,
        "start": found.placement.start if found.placement else None,
        "size": found.placement.size if found.placement else None,
        "exact": item.exact,
        "reservations": [_blocker(claim, sees) for claim in item.claims],
    }


def _blocker(claim: Claim, sees: Sees) -> dict[str, object]:
    visible = sees(claim.pod.namespace)
    return {
        "namespace": claim.pod.namespace if visible else UNAVAILABLE,
        "pod": claim.pod.name if visible else UNAVAILABLE,
        "profile": claim.profile if visible else UNAVAILABLE,
        "start": claim.placement.start,
        "size": claim.placement.size,
        "priority": claim.pod.priority if visible else None,
    }


def _smaller(item: Smaller) -> dict[str, object]:
    return {
        "profile": item.profile,
        "memory_mib": item.memory_mib,
        "node": item.node,
        "gpu_uuid": item.gpu_uuid,
        "start": item.placement.start,
        "size": item.placement.size,
    }
