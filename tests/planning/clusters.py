"""Random clusters as the API server shows them, seen by the extender and by the mirror."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

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
from hami_web.core.placement import Placement
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.policy_names import PLACEMENT_POLICIES
from hami_web.core.registration import encode_registration
from hami_web.core.reservation import Reservation, encode_allocations
from hami_web.core.tables import ProfileTable
from hami_web.history.tenure import FeedTenure
from hami_web.scheduling.state import ClusterState
from hami_web.sync.changes import Batch, NodeChanges, PodChanges
from hami_web.sync.writer import write_batch
from tests.boards import ALLOWED_A100, PLAIN_A100, board
from tests.mirror.observations import moment


@dataclass
class Cluster:
    """Objects of a cluster, and who looks at them."""

    nodes: list[NodeView] = field(default_factory=list)
    pods: list[PodView] = field(default_factory=list)

    def extender(self, policy: SchedulingPolicy) -> ClusterState:
        state = ClusterState(policy)
        state.replace_nodes(self.nodes)
        state.replace_pods(self.pods)
        return state

    def mirror(self) -> None:
        """By the feed's own sinks."""
        state = ClusterState(SchedulingPolicy())
        pods, nodes = PodChanges(state), NodeChanges(state)
        nodes.replace(self.nodes, listed_at=0.0)
        pods.replace(self.pods, listed_at=0.0)
        changed, ended, refusals = pods.take()
        seen, lost = nodes.take()
        batch = Batch(tuple(seen), tuple(lost), tuple(changed), tuple(ended), tuple(refusals))
        tenure = FeedTenure("test")
        tenure.take()
        write_batch(batch, tenure, seen_at=moment(1))

    def offered(self) -> tuple[str, ...]:
        """The nodes that kube-scheduler would name."""
        return tuple(node.name for node in self.nodes if not node.spec.unschedulable)


def node(
    name: str,
    gpus: tuple[GpuCapability, ...],
    *,
    cordoned: str = "",
    blocked: tuple[BlockedInterval, ...] = (),
    ready: bool = True,
    unschedulable: bool = False,
) -> NodeView:
    notes = {keys.NODE_REGISTER: encode_registration(NodeCapability(gpus))}
    if cordoned:
        notes[keys.NODE_DEVICE_CORDON] = cordoned
    if blocked:
        notes[keys.NODE_MIG_BLOCKED] = encode_blocked(blocked)
    return NodeView(
        ObjectMeta(name=name, uid=name, annotations=notes),
        NodeSpec(unschedulable),
        NodeStatus(conditions=[NodeCondition("Ready", "True" if ready else "False")]),
    )


def bound(uid: str, on: str, reservations: list[Reservation], **more: object) -> PodView:
    notes = {keys.POD_MIG_ALLOCATIONS: encode_allocations(reservations)}
    deleting = "2026-11-30T17:00:00Z" if more.get("deleting") else None
    if more.get("stays"):
        notes[keys.POD_DO_NOT_EVICT] = "true"
    meta = ObjectMeta(uid, "team", uid, deletion_timestamp=deleting, annotations=notes)
    priority = more.get("priority", 0)
    return PodView(meta, PodSpec(on, priority=priority), PodStatus("Running"))  # type: ignore[arg-type]


def asking(
    uid: str, *containers: dict[str, int], annotations: dict[str, str] | None = None
) -> PodView:
    """A Pod without a node; limits of each container."""
    listed = [
        Container(f"c{number}", Resources(limits=dict(limits)))
        for number, limits in enumerate(containers)
    ]
    meta = ObjectMeta(uid, "team", uid, annotations=annotations or {})
    return PodView(meta, PodSpec(containers=listed), PodStatus("Pending"))


BOARDS = st.sampled_from(
    [("a100-sxm4-40gb", PLAIN_A100), ("a100-sxm4-40gb", ALLOWED_A100), ("a30", None)]
)


@st.composite
def clusters(draw: st.DrawFn, most_nodes: int = 4) -> Cluster:
    """Up to four nodes; some are closed, cordoned, blocked in part or in conflict."""
    cluster = Cluster()
    for number in range(draw(st.integers(1, most_nodes))):
        name = f"node-{number}"
        key, names = draw(BOARDS)
        gpus = tuple(
            board(key, f"GPU-{number}-{index}", index, names=names, numa=index % 2)
            for index in range(draw(st.integers(1, 3)))
        )
        for gpu in gpus:
            cluster.pods += draw(_pods(name, gpu))
        cluster.nodes.append(draw(_nodes(name, gpus)))
    return cluster


@st.composite
def _nodes(draw: st.DrawFn, name: str, gpus: tuple[GpuCapability, ...]) -> NodeView:
    rarely = st.sampled_from([False] * 7 + [True])
    blocked = (BlockedInterval(gpus[0].uuid, Placement(0, 1), "foreign"),)
    return node(
        name,
        gpus,
        cordoned=gpus[-1].uuid if draw(rarely) else "",
        blocked=blocked if draw(rarely) else (),
        ready=not draw(rarely),
        unschedulable=draw(rarely),
    )


@st.composite
def _pods(draw: st.DrawFn, node_name: str, gpu: GpuCapability) -> list[PodView]:
    """Instances at legal free placements, now and then one that overlaps."""
    table, state, pods = ProfileTable(gpu), 0, []
    for number in range(draw(st.integers(0, 5))):
        shape = draw(st.sampled_from(table.shapes))
        seen = 0 if draw(st.integers(0, 30)) == 30 else state
        fits = table.fits(seen, shape)
        if not fits:
            continue
        fit = draw(st.sampled_from(fits))
        state |= fit.state
        item = Reservation(0, 0, gpu.uuid, shape.profile.name, fit.placement)
        pods.append(
            bound(
                f"{gpu.uuid.lower()}-{number}",
                node_name,
                [item],
                deleting=draw(st.integers(0, 9)) == 9,
                stays=draw(st.integers(0, 9)) == 9,
                priority=draw(st.integers(0, 2)),
            )
        )
    return pods


@st.composite
def limits(draw: st.DrawFn) -> dict[str, int]:
    """What one container asks for."""
    asked = {keys.RESOURCE_COUNT: draw(st.sampled_from([1, 1, 1, 2, 3]))}
    wish = draw(st.sampled_from(["memory", "memory", "share", "largest"]))
    if wish == "memory":
        asked[keys.RESOURCE_MEMORY] = draw(st.sampled_from([4000, 5000, 9900, 15000, 20000, 40000]))
    if wish == "share":
        asked[keys.RESOURCE_MEMORY_PERCENTAGE] = draw(st.sampled_from([10, 25, 50, 100]))
    if draw(st.integers(0, 4)) == 4:
        asked[keys.RESOURCE_CORES] = draw(st.sampled_from([20, 50]))
    return asked


annotations = st.sampled_from(
    [
        {},
        {},
        {keys.POD_NOUSE_GPU_TYPE: "a30"},
        {keys.POD_USE_GPU_UUID: "GPU-0-0,GPU-1-1"},
        {keys.POD_NUMA_BIND: "true"},
        {keys.POD_PROFILE: "2g.10gb"},
    ]
)
policies = st.builds(
    SchedulingPolicy, placement=st.sampled_from(PLACEMENT_POLICIES), upsize=st.booleans()
)
