"""From the API server's JSON to the agent's values; ``InvalidField`` for what is unusable."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hami_web.core import wire
from hami_web.core.errors import MalformedContract
from node_agent.pods import ContainerState, ObservedNode, ObservedPod

_STATUS_LISTS: Final = (
    "initContainerStatuses",
    "containerStatuses",
    "ephemeralContainerStatuses",
)


@dataclass(frozen=True, slots=True)
class PodPage:
    """One page of a list; ``continue_token`` is empty on the last."""

    pods: tuple[ObservedPod, ...]
    resource_version: str
    continue_token: str


@dataclass(frozen=True, slots=True)
class PodEvent:
    """One event of a watch; ``pod`` is None for a bookmark and for an error."""

    kind: str
    resource_version: str
    pod: ObservedPod | None


def node(document: object) -> ObservedNode:
    """Decode a Node."""
    root = wire.as_object(document, "Node")
    metadata = _object(root, "metadata", "Node")
    status = _optional_object(root, "status", "Node")
    resources = {
        name: str(quantity)
        for part in ("capacity", "allocatable")
        for name, quantity in _optional_object(status, part, "Node.status").items()
        if str(quantity) != "0"
    }
    return ObservedNode(
        name=_text(metadata, "name", "Node.metadata"),
        uid=_text(metadata, "uid", "Node.metadata"),
        resource_version=_text(metadata, "resourceVersion", "Node.metadata"),
        annotations=_texts(metadata, "annotations", "Node.metadata"),
        labels=_texts(metadata, "labels", "Node.metadata"),
        resources=resources,
    )


def pod(document: object) -> ObservedPod:
    """Decode a Pod."""
    root = wire.as_object(document, "Pod")
    metadata = _object(root, "metadata", "Pod")
    spec = _object(root, "spec", "Pod")
    status = _optional_object(root, "status", "Pod")
    app = _container_names(spec, "containers")
    node_name = spec.get("nodeName") or ""
    phase = status.get("phase") or "Pending"
    if not isinstance(node_name, str) or not isinstance(phase, str):
        raise MalformedContract("Pod.spec.nodeName, status.phase", [node_name, phase], "strings")
    return ObservedPod(
        namespace=_text(metadata, "namespace", "Pod.metadata"),
        name=_text(metadata, "name", "Pod.metadata"),
        uid=_text(metadata, "uid", "Pod.metadata"),
        resource_version=_text(metadata, "resourceVersion", "Pod.metadata"),
        node=node_name,
        phase=phase,
        deleting=bool(metadata.get("deletionTimestamp")),
        annotations=_texts(metadata, "annotations", "Pod.metadata"),
        labels=_texts(metadata, "labels", "Pod.metadata"),
        containers=_container_names(spec, "initContainers") + app,
        app_containers=app,
        limits=_limits(spec, "initContainers") + _limits(spec, "containers"),
        states=_states(status),
    )


def pod_page(document: object) -> PodPage:
    """Decode one page of a PodList."""
    root = wire.as_object(document, "PodList")
    metadata = _object(root, "metadata", "PodList")
    items = wire.as_array(root.get("items") or [], "PodList.items")
    token = metadata.get("continue") or ""
    if not isinstance(token, str):
        raise MalformedContract("PodList.metadata.continue", token, "a string")
    return PodPage(
        tuple(pod(item) for item in items),
        _text(metadata, "resourceVersion", "PodList.metadata"),
        token,
    )


def pod_event(line: bytes) -> PodEvent:
    """Decode one line of a watch."""
    try:
        event = wire.as_object(json.loads(line), "WatchEvent")
    except (ValueError, RecursionError) as error:
        raise MalformedContract("WatchEvent", line, f"a JSON object ({error})") from error
    kind = _text(event, "type", "WatchEvent")
    if kind == "ERROR":
        return PodEvent(kind, "", None)
    target = _object(event, "object", "WatchEvent")
    version = _text(_object(target, "metadata", "WatchEvent.object"), "resourceVersion", "object")
    return PodEvent(kind, version, None if kind == "BOOKMARK" else pod(target))


def _states(status: Mapping[str, object]) -> Mapping[str, ContainerState]:
    states: dict[str, ContainerState] = {}
    for key in _STATUS_LISTS:
        for item in wire.as_array(status.get(key) or [], f"Pod.status.{key}"):
            entry = wire.as_object(item, f"Pod.status.{key}")
            state = _optional_object(entry, "state", f"Pod.status.{key}")
            states[_text(entry, "name", f"Pod.status.{key}")] = _state(state)
    return states


def _state(state: Mapping[str, object]) -> ContainerState:
    """Of several keys the most cautious one; none means waiting, as the API documents it."""
    if state.get("running") is not None:
        return ContainerState.RUNNING
    if state.get("waiting") is not None or state.get("terminated") is None:
        return ContainerState.WAITING
    return ContainerState.TERMINATED


def _container_names(spec: Mapping[str, object], key: str) -> tuple[str, ...]:
    items = wire.as_array(spec.get(key) or [], f"Pod.spec.{key}")
    return tuple(
        _text(wire.as_object(item, f"Pod.spec.{key}"), "name", f"Pod.spec.{key}") for item in items
    )


def _limits(spec: Mapping[str, object], key: str) -> tuple[Mapping[str, str], ...]:
    """Resource limits of each container; quantities as text, however they were written."""
    return tuple(
        {
            name: str(quantity)
            for name, quantity in _optional_object(
                _optional_object(wire.as_object(item, key), "resources", key), "limits", key
            ).items()
        }
        for item in wire.as_array(spec.get(key) or [], f"Pod.spec.{key}")
    )


def _object(parent: Mapping[str, object], key: str, where: str) -> Mapping[str, object]:
    return wire.as_object(parent.get(key), f"{where}.{key}")


def _optional_object(parent: Mapping[str, object], key: str, where: str) -> Mapping[str, object]:
    return wire.as_object(parent.get(key) or {}, f"{where}.{key}")


def _text(parent: Mapping[str, object], key: str, where: str) -> str:
    return wire.as_text(parent.get(key), f"{where}.{key}")


def _texts(parent: Mapping[str, object], key: str, where: str) -> Mapping[str, str]:
    found = _optional_object(parent, key, where)
    texts: dict[str, str] = {}
    for name, value in found.items():
        if not isinstance(value, str):
            raise MalformedContract(f"{where}.{key}[{name}]", value, "a string")
        texts[name] = value
    return texts
