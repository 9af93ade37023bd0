"""Calls a scheduler extender with the structs and the manners of kube-scheduler."""

from __future__ import annotations

import http.client
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import msgspec

from hami_web.simulator.client import ApiClient, ApiError, Endpoint
from hami_web.simulator.documents import JsonObject, metadata, uid_of

MANAGED_RESOURCES = (
    "nvidia.com/gpu",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
)


class ExtenderError(Exception):
    """The call failed, or the extender said so in ``Error``."""


@dataclass(frozen=True, slots=True)
class ExtenderConfig:
    """One entry of ``extenders`` in a KubeSchedulerConfiguration; ``timeout`` is in seconds."""

    url: str
    filter_verb: str = "filter"
    bind_verb: str = "bind"
    node_cache_capable: bool = True
    timeout: float = 30.0
    managed_resources: tuple[str, ...] = MANAGED_RESOURCES


@dataclass(frozen=True, slots=True)
class Filtered:
    """Nodes that fit, in the extender's order, and a reason for each that does not."""

    nodes: tuple[str, ...]
    failed: dict[str, str] = field(default_factory=dict)


class Extender:
    """One extender over kept-alive HTTP; safe to use from several threads."""

    def __init__(self, config: ExtenderConfig) -> None:
        self._config = config
        split = urlsplit(config.url)
        self._prefix = split.path.rstrip("/")
        self._http = ApiClient(Endpoint(f"{split.scheme}://{split.netloc}", timeout=config.timeout))

    def is_interested(self, pod: JsonObject) -> bool:
        """Some container, init containers too, asks for a managed resource."""
        spec = pod.get("spec") or {}
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
            resources = container.get("resources") or {}
            asked = {*(resources.get("requests") or ()), *(resources.get("limits") or ())}
            if asked.intersection(self._config.managed_resources):
                return True
        return False

    def filter(self, pod: JsonObject, nodes: dict[str, JsonObject]) -> Filtered:
        """Ask which of ``nodes`` (by name) fit the Pod; raises :class:`ExtenderError`."""
        capable = self._config.node_cache_capable
        arguments: JsonObject = {
            "Pod": {key: pod[key] for key in pod if key not in ("kind", "apiVersion")},
            "Nodes": None if capable else _node_list(nodes),
            "NodeNames": list(nodes) if capable else None,
        }
        answer = self._call(self._config.filter_verb, arguments)
        if answer.get("NodeNames") is not None and capable:
            names = tuple(str(name) for name in answer["NodeNames"])
        else:
            items = (answer.get("Nodes") or {}).get("items") or []
            names = tuple(str(metadata(item)["name"]) for item in items)
        for name in names:
            if name not in nodes:
                raise ExtenderError(
                    f"extender {self._config.url!r} claims a filtered node {name!r} which is not "
                    "found in the input node list"
                )
        failed = {**(answer.get("FailedAndUnresolvableNodes") or {})}
        failed |= answer.get("FailedNodes") or {}
        return Filtered(names, failed)

    def bind(self, pod: JsonObject, node: str) -> None:
        """Let the extender bind the Pod; raises :class:`ExtenderError`."""
        meta = metadata(pod)
        arguments = {
            "PodName": meta["name"],
            "PodNamespace": meta["namespace"],
            "PodUID": uid_of(pod),
            "Node": node,
        }
        self._call(self._config.bind_verb, arguments)

    def close(self) -> None:
        self._http.close()

    def _call(self, verb: str, arguments: JsonObject) -> JsonObject:
        url = f"{self._config.url.rstrip('/')}/{verb}"
        try:
            answer = self._http.request("POST", f"{self._prefix}/{verb}", arguments)
        except ApiError as error:
            raise ExtenderError(
                f"failed {verb} with extender at URL {url}, code {error.code}"
            ) from error
        except (OSError, http.client.HTTPException, msgspec.DecodeError) as error:
            raise ExtenderError(f'Post "{url}": {error}') from error
        folded = {_GO_NAMES.get(key.lower(), key): value for key, value in answer.items()}
        if folded.get("Error"):
            raise ExtenderError(str(folded["Error"]))
        return folded


# Go's decoder takes field names in any case.
_GO_NAMES = {
    name.lower(): name
    for name in ("Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error")
}


def _node_list(nodes: dict[str, JsonObject]) -> JsonObject:
    bare = [
        {key: node[key] for key in node if key not in ("kind", "apiVersion")}
        for node in nodes.values()
    ]
    return {"metadata": {}, "items": bare}
