"""From what the watches see to what the map shows."""

from __future__ import annotations

from pathlib import Path

from hami_web.cluster.views import NodeCondition, NodeStatus, NodeView, ObjectMeta, PodSpec, PodView
from hami_web.core import annotations as keys
from hami_web.core.blocked import BlockedInterval, encode_blocked
from hami_web.core.placement import Placement
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.reservation import Reservation, RuntimeIdentity, encode_allocations
from hami_web.dashboard.cells import CellState, Fit
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.drawing import draw_map
from hami_web.dashboard.pools import PoolBook
from hami_web.scheduling.state import ClusterState

REGISTER = Path(__file__).parents[1] / "golden/contract/register-two-a100.txt"
GPU = "GPU-12345678-1234-1234-1234-123456780000"
IDENTITY = RuntimeIdentity("MIG-1", 3, 0)


def node(name: str = "n1", **annotations: str) -> NodeView:
    texts = {keys.NODE_REGISTER: REGISTER.read_text().strip()} | annotations
    ready = NodeStatus(conditions=[NodeCondition("Ready", "True")])
    return NodeView(ObjectMeta(name=name, uid=name, annotations=texts), status=ready)


def pod(
    name: str, start: int, size: int, identity: RuntimeIdentity | None = None, **meta
) -> PodView:
    profile = {1: "1g.5gb", 2: "2g.10gb", 4: "3g.20gb"}[size]
    text = encode_allocations([Reservation(0, 0, GPU, profile, Placement(start, size), identity)])
    return PodView(
        ObjectMeta(
            name=name,
            namespace="team",
            uid=name,
            annotations={keys.POD_MIG_ALLOCATIONS: text},
            **meta,
        ),
        PodSpec(node_name="n1"),
    )


def drawn(nodes: list[NodeView], pods: list[PodView]) -> ClusterMap:
    state = ClusterState(SchedulingPolicy())
    state.replace_nodes(nodes)
    state.replace_pods(pods)
    return draw_map(state.snapshot(), version=1)


def states(shown: ClusterMap, uuid: str = GPU) -> dict[str, CellState]:
    return {str(cell.placement): cell.state for cell in shown.rows[uuid].cells}


def labelled(name: str, **labels: str) -> NodeView:
    return NodeView(ObjectMeta(name=name, uid=name, labels=labels))


def test_the_first_label_that_a_node_has_names_its_pool() -> None:
    book = PoolBook(["mine", "theirs"])
    book.replace([labelled("n1", theirs="slow"), labelled("n2", mine="fast", theirs="slow")])
    assert book.listed() == {"n1": "slow", "n2": "fast"}
    book.put(labelled("n1", mine="", other="x"))
    book.put(labelled("n3", mine="new"))
    book.remove("n2")
    assert book.listed() == {"n1": "", "n3": "new"}


def test_reservations_are_reserved_realized_or_terminating() -> None:
    gone = pod("c", 2, 2, IDENTITY, deletion_timestamp="2026-01-01T00:00:00Z")
    shown = drawn([node()], [pod("a", 0, 1), pod("b", 4, 4, IDENTITY), gone])
    assert states(shown) == {
        "0:1": CellState.BOUND,
        "1:1": CellState.FREE,
        "2:2": CellState.TERMINATING,
        "4:4": CellState.REALIZED,
    }


def test_a_cell_carries_profile_pod_memory_and_mig_uuid() -> None:
    cell = drawn([node()], [pod("b", 4, 4, IDENTITY)]).rows[GPU].cells[-1]
    assert (cell.profile, cell.pod, cell.detail) == ("3g.20gb", "team/b", "MIG-1")
    assert cell.memory_mib > 0


def test_blocked_memory_slices_are_shown_with_their_reason() -> None:
    blocked = encode_blocked([BlockedInterval(GPU, Placement(2, 2), "foreign instance")])
    shown = drawn([node(**{keys.NODE_MIG_BLOCKED: blocked})], [])
    cell = next(c for c in shown.rows[GPU].cells if c.state is CellState.BLOCKED)
    assert (str(cell.placement), cell.detail) == ("2:2", "foreign instance")


def test_overlapping_reservations_close_the_gpu_and_leave_nothing_to_fit() -> None:
    row = drawn([node()], [pod("a", 0, 2), pod("b", 1, 1)]).rows[GPU]
    assert row.cells[0].state is CellState.CONFLICTED
    assert (row.notes, row.fits) == (("conflict",), ())


def test_what_still_fits_counts_around_what_is_taken() -> None:
    fits = drawn([node()], [pod("b", 4, 4, IDENTITY)]).rows[GPU].fits
    assert fits[0] == Fit("1g.5gb", 4)
    assert Fit("7g.40gb", 0) in fits


def test_a_node_that_is_not_ready_says_so() -> None:
    silent = node()
    silent.status.conditions = []
    assert drawn([silent], []).nodes[0].notes == ("stale",)


def test_a_pod_that_cannot_be_read_is_told_and_closes_the_node() -> None:
    bad = pod("a", 0, 1)
    bad.metadata.annotations = {keys.POD_MIG_ALLOCATIONS: "[{}]"}
    notes = drawn([node()], [bad]).nodes[0].notes
    assert notes[0] == "doubt"
    assert "Pod team/a" in notes[1]


def test_nodes_without_gpus_are_left_out() -> None:
    plain = NodeView(ObjectMeta(name="cpu-1", uid="cpu-1"))
    assert [block.name for block in drawn([plain, node()], []).nodes] == ["n1"]
