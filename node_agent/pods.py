"""Pods and the node as the agent sees them: only the fields it decides on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class ContainerState(StrEnum):
    """State of one container as its status reports it."""

    WAITING = "waiting"
    RUNNING = "running"
    TERMINATED = "terminated"


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """One Pod.

    ``containers`` are init containers first, then app containers; ``limits`` are theirs, in the
    same order; ``states`` is by container name.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    node: str
    phase: str
    deleting: bool
    annotations: Mapping[str, str]
    labels: Mapping[str, str]
    containers: tuple[str, ...]
    app_containers: tuple[str, ...]
    limits: tuple[Mapping[str, str], ...]
    states: Mapping[str, ContainerState]

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def terminal(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def over(self) -> bool:
        """No container of the Pod runs, and none will run again.

        A terminal phase alone is no proof: an evicted Pod is ``Failed`` before its containers are
        gone. A deleting Pod keeps its instances until each of its containers has terminated.
        """
        if self.terminal:
            return ContainerState.RUNNING not in self.states.values()
        if not self.deleting:
            return False
        reported = all(name in self.states for name in self.app_containers)
        ended = all(state is ContainerState.TERMINATED for state in self.states.values())
        return bool(self.app_containers) and reported and ended


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """The node: annotations, labels, and the resources it offers, without those of zero."""

    name: str
    uid: str
    resource_version: str
    annotations: Mapping[str, str]
    labels: Mapping[str, str]
    resources: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PodList:
    """Every Pod of the node at one resource version: all pages, or there is no PodList."""

    pods: tuple[ObservedPod, ...]
    resource_version: str
