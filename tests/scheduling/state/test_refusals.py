"""What a Pod that fits nowhere is told."""

from __future__ import annotations

import pytest

from hami_web.core import annotations as keys
from hami_web.core.errors import InvalidRequest
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.reasons import Reason
from hami_web.core.reservation import Reservation
from hami_web.scheduling.state import ClusterState, Held, Refused
from tests.builders import a100_40gb, reservation
from tests.scheduling.state.cluster import a100s, node, pod, request_of

GPU = "GPU-node-1-0"


@pytest.fixture
def state() -> ClusterState:
    state = ClusterState(SchedulingPolicy())
    state.set_node(node("node-1"))
    return state


def one_g(start: int) -> Reservation:
    return reservation(gpu=GPU, name="1g.5gb", start=start, size=1)


def refused(state: ClusterState, memory: int, count: int = 1, **annotations: str) -> Refused:
    view = pod("asking", memory, count=count, annotations=annotations)
    answer = state.filter(view, request_of(view), ["node-1"])
    assert isinstance(answer, Refused)
    return answer


def test_the_nearest_miss_names_placement_and_pods(state: ClusterState) -> None:
    for number, start in enumerate((0, 1, 5)):
        state.set_pod(pod(f"p{number}", on="node-1", reservations=[one_g(start)]))
    answer = refused(state, 20000)
    nearest = answer.nearest
    assert answer.reasons == {"node-1": "1/1 CardMigTopologyInfeasible"}
    assert nearest is not None
    assert (nearest.node, nearest.gpu_uuid, nearest.profile) == ("node-1", GPU, "3g.20gb")
    assert str(nearest.placement) == "4:4"
    assert [claim.pod.full_name for claim in nearest.claims] == ["team-a/pod-p2"]
    assert nearest.smaller is not None
    assert nearest.smaller.profile == "2g.10gb"
    assert nearest.fragmented
    assert str(nearest) == (
        "the free memory slices are scattered; 3g.20gb would fit at 4:4 of GPU-node-1-0 on node-1"
        " without team-a/pod-p2 (1g.5gb at 5:1); 2g.10gb fits now on node-1"
    )


def test_no_capacity_is_not_called_fragmentation(state: ClusterState) -> None:
    full = reservation(gpu=GPU, name="7g.40gb", start=0, size=8)
    state.set_pod(pod("all", on="node-1", reservations=[full]))
    answer = refused(state, 4000)
    assert answer.reasons == {"node-1": "1/1 CardInsufficientMemory"}
    assert answer.nearest is not None
    assert not answer.nearest.fragmented
    assert answer.nearest.smaller is None
    assert str(answer.nearest).startswith("no capacity; 1g.5gb would fit at 0:1")


def test_nothing_is_near_for_what_no_gpu_has(state: ClusterState) -> None:
    assert refused(state, 50000).nearest is None


def test_a_request_for_too_many_devices_hears_how_many_fit(state: ClusterState) -> None:
    answer = refused(state, 9000, count=4)
    assert answer.most_devices == 3
    assert answer.details["node-1"].wanted == 4
    assert answer.nearest is None


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({keys.POD_USE_GPU_TYPE: "H100"}, Reason.TYPE_MISMATCH),
        ({keys.POD_NOUSE_GPU_TYPE: "a100,h100"}, Reason.TYPE_MISMATCH),
        ({keys.POD_MODE: "hami-core"}, Reason.TYPE_MISMATCH),
        ({keys.POD_USE_GPU_UUID: "GPU-other"}, Reason.UUID_MISMATCH),
        ({keys.POD_NOUSE_GPU_UUID: GPU}, Reason.UUID_MISMATCH),
        ({keys.POD_PROFILE: "1g.5gb+me"}, Reason.UNKNOWN_PROFILE),
    ],
)
def test_a_gpu_that_the_pod_does_not_accept_says_why(
    state: ClusterState, annotations: dict[str, str], expected: Reason
) -> None:
    answer = refused(state, 4000, **annotations)
    assert answer.details["node-1"].gpus == {GPU: expected}


@pytest.mark.parametrize(
    "annotations",
    [
        {keys.POD_USE_GPU_TYPE: "a100"},
        {keys.POD_MODE: "hami-core,mig"},
        {keys.POD_USE_GPU_UUID: f"{GPU}, GPU-other"},
        {keys.POD_PROFILE: "2g.10gb"},
        {keys.POD_NODE_POLICY: "spread", keys.POD_GPU_POLICY: "binpack"},
    ],
)
def test_a_pod_whose_wishes_are_met_is_held(
    state: ClusterState, annotations: dict[str, str]
) -> None:
    view = pod("asking", 4000, annotations=annotations)
    assert isinstance(state.filter(view, request_of(view), ["node-1"]), Held)


def test_numa_binding_that_no_node_can_meet_is_refused() -> None:
    state = ClusterState(SchedulingPolicy())
    gpus = [a100_40gb("GPU-0", 0, numa=0), a100_40gb("GPU-1", 1, numa=1)]
    state.set_node(node("node-1", gpus))
    answer = refused(state, 40000, 2, **{keys.POD_NUMA_BIND: "true"})
    assert answer.reasons == {"node-1": "1/2 AllocatedCardsInsufficientRequest"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (keys.POD_NODE_POLICY, "mutex"),
        (keys.POD_GPU_POLICY, "topology-aware"),
        (keys.POD_DEVICE_WEIGHTS, "slot=1"),
    ],
)
def test_a_wish_that_the_policy_does_not_know_is_an_error_that_names_it(
    state: ClusterState, key: str, value: str
) -> None:
    view = pod("asking", 4000, annotations={key: value})
    with pytest.raises(InvalidRequest, match=key):
        state.filter(view, request_of(view), ["node-1"])


def test_a_node_changed_since_is_explained_as_it_was(state: ClusterState) -> None:
    full = reservation(gpu=GPU, name="7g.40gb", start=0, size=8)
    state.set_pod(pod("all", on="node-1", reservations=[full]))
    answer = refused(state, 4000)
    state.set_node(node("node-1", a100s("node-1", 2)))
    assert answer.reasons == {"node-1": "1/1 CardInsufficientMemory"}
