"""Writes in the cluster that a take-over makes: each is done once however often it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec

from hami_web.cluster.errors import (
    Conflict,
    Forbidden,
    MalformedAnswer,
    NotFound,
    TooManyRequests,
)
from hami_web.cluster.transport import Request, Transport
from hami_web.handover.changes import Change, PodName
from hami_web.handover.obstacles import Obstacle, ObstacleCode
from hami_web.migration.objects import CheckedNode, CheckedPod, Version
from hami_web.migration.recognized import release

MANAGER: Final = "hami-handover"
MERGE_PATCH: Final = "application/merge-patch+json"
EVICTION_V1_SINCE: Final = (1, 22)
"""The first release of Kubernetes that evicts by ``policy/v1``."""
V = TypeVar("V")


class NodeChanged(Exception):
    """The node is not as it was when the change was decided; the next look decides anew."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes of one cluster. All raise ClusterError."""

    transport: Transport

    def get_node(self, name: str) -> CheckedNode:
        """The node as it is now."""
        return self._read(_node_path(name), CheckedNode)

    def get_pod(self, namespace: str, name: str) -> CheckedPod | None:
        """A Pod as it is now; None where there is none of the name."""
        try:
            return self._read(_pod_path(namespace, name), CheckedPod)
        except NotFound:
            return None

    def apply(self, node: CheckedNode, change: Change) -> tuple[Obstacle, ...]:
        """Make a change of the node and its Pods; what was refused comes back as obstacles.

        Raises NodeChanged when the node is another or others wrote what the change is about, and
        ClusterError for what is no refusal of a single Pod.
        """
        if change.unschedulable is not None or change.labels:
            self._patch_node(node, change)
        refused = []
        for pod in change.evict:
            refused += self._evict(pod)
        for pod in change.delete:
            self.delete(pod)
        return tuple(refused)

    def create_pod(self, namespace: str, document: Mapping[str, Any]) -> None:
        """Create; one of the name that is there already is taken as made by us before."""
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
        try:
            self._write("POST", path, document)
        except Conflict:
            return

    def delete(self, pod: PodName) -> None:
        """Delete exactly this Pod; one that is gone, or another of the name, is left."""
        body = {"preconditions": {"uid": pod.uid}}
        try:
            self._write("DELETE", _pod_path(pod.namespace, pod.name), body)
        except (NotFound, Conflict):
            return

    def evict(self, pod: PodName) -> None:
        """Ask for an eviction; done where the Pod is gone, or is another of the name."""
        version = self._read("/version", Version).git_version
        modern = (release(version) or EVICTION_V1_SINCE) >= EVICTION_V1_SINCE
        body = {
            "apiVersion": "policy/v1" if modern else "policy/v1beta1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        try:
            self._write("POST", f"{_pod_path(pod.namespace, pod.name)}/eviction", body)
        except (NotFound, Conflict):
            return

    def _evict(self, pod: PodName) -> list[Obstacle]:
        try:
            self.evict(pod)
        except TooManyRequests as error:
            return [Obstacle(ObstacleCode.EVICTION_REFUSED, f"Pod {pod}", str(error))]
        except Forbidden as error:
            return [Obstacle(ObstacleCode.NOT_PERMITTED, f"Pod {pod}", str(error))]
        return []

    def _patch_node(self, seen: CheckedNode, change: Change) -> None:
        now = self.get_node(seen.name)
        about = set(change.labels)
        if now.metadata.uid != seen.metadata.uid or any(
            now.labels.get(key) != seen.labels.get(key) for key in about
        ):
            raise NodeChanged(seen.name)
        metadata: dict[str, Any] = {"resourceVersion": now.metadata.resource_version}
        if change.labels:
            metadata["labels"] = dict(change.labels)
        body: dict[str, Any] = {"metadata": metadata}
        if change.unschedulable is not None:
            body["spec"] = {"unschedulable": change.unschedulable or None}
        try:
            self._write("PATCH", _node_path(seen.name), body, MERGE_PATCH)
        except Conflict as error:
            raise NodeChanged(seen.name) from error

    def _write(
        self, method: str, path: str, body: object, content_type: str = "application/json"
    ) -> None:
        query = None if method == "DELETE" else {"fieldManager": MANAGER}
        self.transport.send(
            Request(method, path, query=query, body=body, content_type=content_type)
        )

    def _read(self, path: str, view: type[V]) -> V:
        body = self.transport.send(Request("GET", path))
        try:
            return msgspec.json.decode(body, type=view)
        except msgspec.MsgspecError as error:
            raise MalformedAnswer(f"GET {path}: {error}") from error


def _pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"


def _node_path(name: str) -> str:
    return f"/api/v1/nodes/{quote(name, safe='')}"
