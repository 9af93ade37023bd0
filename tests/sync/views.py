"""Nodes and Pods as the API server shows them, for tests of the feed."""

from __future__ import annotations

from hami_web.cluster.views import (
    Container,
    NodeCondition,
    NodeStatus,
    NodeView,
    ObjectMeta,
    PodCondition,
    PodSpec,
    PodStatus,
    PodView,
    Resources,
)
from hami_web.core import annotations as keys
from hami_web.core.capability import NodeCapability
from hami_web.core.placement import Placement
from hami_web.core.registration import encode_registration
from hami_web.core.reservation import Reservation, encode_allocations
from tests.builders import GPU_A, a100_40gb

REGISTER = encode_registration(NodeCapability((a100_40gb(),)))


def node(name: str = "n1", register: str = REGISTER, **more) -> NodeView:
    ready = NodeStatus(conditions=[NodeCondition("Ready", "True")])
    return NodeView(
        ObjectMeta(name=name, uid=name, annotations={keys.NODE_REGISTER: register}, **more),
        status=ready,
    )


def allocations(start: int = 0, gpu: str = GPU_A) -> str:
    return encode_allocations([Reservation(0, 0, gpu, "1g.5gb", Placement(start, 1))])


def bound(
    name: str, start: int = 0, text: str | None = None, notes: dict[str, str] | None = None, **more
) -> PodView:
    notes = {
        keys.POD_MIG_ALLOCATIONS: allocations(start) if text is None else text,
        keys.POD_BIND_TIME: "1767225600",
    } | (notes or {})
    meta = ObjectMeta(name=name, namespace="team", uid=name, annotations=notes, **more)
    return PodView(meta, PodSpec(node_name="n1"))


def waiting(name: str, message: str) -> PodView:
    asks = Container("a", Resources(limits={keys.RESOURCE_COUNT: "1"}))
    said = PodStatus(conditions=[PodCondition("PodScheduled", "False", message)])
    return PodView(
        ObjectMeta(name=name, namespace="team", uid=name), PodSpec(containers=[asks]), said
    )
