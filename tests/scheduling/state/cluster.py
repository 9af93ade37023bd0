"""Nodes and Pods as the API server shows them, for tests of the state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hami_web.cluster.views import (
    Container,
    NodeCondition,
    NodeSpec,
    NodeStatus,
    NodeView,
    ObjectMeta,
    PodSpec,
    PodStatus,
    PodView,
    Resources,
)
from hami_web.core import annotations as keys
from hami_web.core.blocked import BlockedInterval, encode_blocked
from hami_web.core.capability import GpuCapability, NodeCapability
from hami_web.core.device_list import encode_devices
from hami_web.core.registration import encode_registration
from hami_web.core.request import PodRequest, parse_pod_request
from hami_web.core.reservation import Reservation, encode_allocations
from hami_web.scheduling.holds import Hold
from tests.builders import a100_40gb


def node(
    name: str = "node-1",
    gpus: Sequence[GpuCapability] | None = None,
    *,
    blocked: Iterable[BlockedInterval] = (),
    cordon: str = "",
    ready: bool = True,
    register: str | None = None,
    allocatable: dict[str, str | int] | None = None,
    labels: dict[str, str] | None = None,
) -> NodeView:
    gpus = (a100_40gb(f"GPU-{name}-0"),) if gpus is None else gpus
    text = encode_registration(NodeCapability(tuple(gpus))) if register is None else register
    annotations = {keys.NODE_REGISTER: text}
    if blocked:
        annotations[keys.NODE_MIG_BLOCKED] = encode_blocked(blocked)
    if cordon:
        annotations[keys.NODE_DEVICE_CORDON] = cordon
    return NodeView(
        ObjectMeta(name=name, annotations=annotations, labels=labels),
        NodeSpec(),
        NodeStatus(allocatable, [NodeCondition("Ready", "True" if ready else "False")]),
    )


def a100s(name: str, count: int) -> tuple[GpuCapability, ...]:
    return tuple(a100_40gb(f"GPU-{name}-{index}", index) for index in range(count))


def pod(
    uid: str = "uid-1",
    *asked: int,
    count: int = 1,
    on: str = "",
    reservations: Sequence[Reservation] | None = None,
    phase: str = "",
    deleting: bool = False,
    annotations: dict[str, str] | None = None,
) -> PodView:
    """A Pod whose containers ask for ``asked`` MiB each, ``count`` devices per container."""
    written = dict(annotations or {})
    if reservations is not None:
        written[keys.POD_MIG_ALLOCATIONS] = encode_allocations(reservations)
    containers = [
        Container(
            f"c{index}",
            Resources(limits={keys.RESOURCE_COUNT: count, keys.RESOURCE_MEMORY: memory}),
        )
        for index, memory in enumerate(asked or (4000,))
    ]
    return PodView(
        ObjectMeta(
            name=f"pod-{uid}",
            namespace="team-a",
            uid=uid,
            deletion_timestamp="2026-11-30T17:00:00Z" if deleting else None,
            annotations=written,
        ),
        PodSpec(node_name=on, containers=containers),
        PodStatus(phase=phase or ("Running" if on else "Pending")),
    )


def request_of(view: PodView) -> PodRequest:
    return parse_pod_request(view.container_specs(), view.annotations)


def bound(view: PodView, hold: Hold) -> PodView:
    """The same Pod after the Binding that a hold leads to."""
    return PodView(
        ObjectMeta(
            name=view.metadata.name,
            namespace=view.metadata.namespace,
            uid=view.uid,
            annotations={
                **view.annotations,
                keys.POD_MIG_ALLOCATIONS: encode_allocations(hold.reservations),
                keys.POD_DEVICES_ALLOCATED: encode_devices(hold.devices),
            },
        ),
        PodSpec(node_name=hold.node, containers=view.spec.containers),
        PodStatus(phase="Running"),
    )
