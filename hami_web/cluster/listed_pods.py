"""Pods of a list, without decoding what nobody reads of those that are bound."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from hami_web.cluster.views import Container, ObjectMeta, PodSpec, PodStatus, PodView


class _ListedPodSpec(Struct, rename="camel", gc=False):
    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    containers: Raw = Raw()
    init_containers: Raw = Raw()


class ListedPod(Struct, gc=False):
    """A Pod in a list: its containers, most of its text, are read only where they matter."""

    metadata: ObjectMeta
    spec: _ListedPodSpec = msgspec.field(default_factory=_ListedPodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    def view(self) -> PodView:
        """The Pod, without containers where it is bound. Raises MsgspecError."""
        spec = self.spec
        whole = PodSpec(spec.node_name, spec.scheduler_name, spec.priority)
        if not spec.node_name:
            whole.containers = _containers(spec.containers)
            whole.init_containers = _containers(spec.init_containers)
        return PodView(self.metadata, whole, self.status)


def _containers(raw: Raw) -> list[Container] | None:
    return _CONTAINERS.decode(raw) if raw else None


_CONTAINERS = msgspec.json.Decoder(list[Container] | None)
