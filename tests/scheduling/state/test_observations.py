"""What the state makes of what it is shown: bound Pods, doubts, conflicts, blocked slices."""

from __future__ import annotations

import pytest

from hami_web.core import annotations as keys
from hami_web.core.blocked import BlockedInterval
from hami_web.core.device_list import ListedDevice, encode_devices
from hami_web.core.placement import Placement
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.reasons import Reason
from hami_web.core.reservation import Reservation, RuntimeIdentity
from hami_web.scheduling.records import Phase
from hami_web.scheduling.state import ClusterState, Held, Refused
from tests.builders import a100_40gb, reservation
from tests.scheduling.state.cluster import a100s, bound, node, pod, request_of

GPU = "GPU-node-1-0"


@pytest.fixture
def state() -> ClusterState:
    state = ClusterState(SchedulingPolicy())
    state.set_node(node("node-1"))
    return state


def at(start: int, size: int = 2, name: str = "2g.10gb", gpu: str = GPU) -> Reservation:
    return reservation(gpu=gpu, name=name, start=start, size=size)


def answer(state: ClusterState, memory: int = 4000, *names: str) -> Held | Refused:
    view = pod("asking", memory)
    found = state.filter(view, request_of(view), names or ("node-1",))
    state.release("asking")
    return found


def text(state: ClusterState, memory: int = 4000) -> str:
    found = answer(state, memory)
    assert isinstance(found, Refused)
    return found.reasons["node-1"]


def mask(state: ClusterState, name: str = "node-1", gpu: int = 0) -> int:
    record = state.snapshot().nodes[name].gpus[gpu]
    return record.state & record.table.slice_mask


def test_a_bound_pod_occupies_its_placement(state: ClusterState) -> None:
    state.set_pod(pod("a", on="node-1", reservations=[at(2)]))
    assert mask(state) == 0b1100


def test_the_order_of_pods_and_nodes_does_not_matter() -> None:
    state = ClusterState(SchedulingPolicy())
    state.set_pod(pod("a", on="node-1", reservations=[at(2)]))
    state.set_node(node("node-1"))
    assert mask(state) == 0b1100


def test_annotations_of_an_unbound_pod_count_for_nothing(state: ClusterState) -> None:
    state.set_pod(pod("a", reservations=[at(2)]))
    assert mask(state) == 0


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_terminal_pod_is_free(state: ClusterState, phase: str) -> None:
    state.set_pod(pod("a", on="node-1", reservations=[at(2)]))
    state.set_pod(pod("a", on="node-1", reservations=[at(2)], phase=phase))
    assert mask(state) == 0


def test_a_deleting_pod_occupies_until_it_is_gone(state: ClusterState) -> None:
    state.replace_pods([pod("a", on="node-1", reservations=[at(2)], deleting=True)])
    (claim,) = state.snapshot().nodes["node-1"].gpus[0].claims
    assert claim.phase is Phase.TERMINATING
    assert mask(state) == 0b1100
    state.remove_pod("a")
    assert mask(state) == 0


def test_a_pod_that_vanished_from_a_complete_list_is_free(state: ClusterState) -> None:
    state.set_pod(pod("a", on="node-1", reservations=[at(2)]))
    state.set_pod(pod("b", on="node-1", reservations=[at(4)]))
    state.replace_pods([pod("b", on="node-1", reservations=[at(4)])])
    assert mask(state) == 0b110000


def test_a_late_delete_of_an_old_uid_leaves_the_new_pod(state: ClusterState) -> None:
    state.set_pod(pod("old", on="node-1", reservations=[at(2)]))
    state.set_pod(pod("new", on="node-1", reservations=[at(4)]))
    state.remove_pod("old")
    state.remove_pod("old")
    assert mask(state) == 0b110000


def test_runtime_identity_makes_a_reservation_realized(state: ClusterState) -> None:
    realized = reservation(gpu=GPU, start=2, identity=RuntimeIdentity("MIG-1", 3, 0))
    state.set_pod(pod("a", on="node-1", reservations=[realized]))
    (claim,) = state.snapshot().nodes["node-1"].gpus[0].claims
    assert (claim.phase, claim.identity) == (Phase.REALIZED, RuntimeIdentity("MIG-1", 3, 0))


def test_overlapping_reservations_close_their_gpu_and_no_other() -> None:
    state = ClusterState(SchedulingPolicy())
    state.set_node(node("node-1", a100s("node-1", 2)))
    state.set_pod(pod("a", on="node-1", reservations=[at(0)]))
    state.set_pod(pod("b", on="node-1", reservations=[at(0, 4, "3g.20gb")]))
    state.set_pod(pod("c", on="node-1", reservations=[at(4)]))
    first, second = state.snapshot().nodes["node-1"].gpus
    assert {c.pod.uid: c.phase for c in first.claims} == {
        "a": Phase.CONFLICTED,
        "b": Phase.CONFLICTED,
        "c": Phase.RESERVED,
    }
    assert (first.refusal, second.refusal) == (Reason.CONFLICT, None)
    found = answer(state)
    assert isinstance(found, Held)
    assert found.hold.reservations[0].gpu_uuid == "GPU-node-1-1"


def test_a_conflict_ends_with_one_of_its_pods(state: ClusterState) -> None:
    state.set_pod(pod("a", on="node-1", reservations=[at(0)]))
    state.set_pod(pod("b", on="node-1", reservations=[at(0, 4, "3g.20gb")]))
    assert text(state) == "1/1 CardMigReservationConflict"
    state.remove_pod("b")
    assert isinstance(answer(state), Held)


@pytest.mark.parametrize(
    "written",
    [
        "[{",
        "{}",
        '[{"containerIndex":0}]',
        '[{"containerIndex":0,"deviceIndex":0,"gpuUUID":"GPU-node-1-0","profile":"2g.10gb",'
        '"placement":{"start":0,"size":-2}}]',
        '[{"containerIndex":0,"deviceIndex":0,"gpuUUID":"GPU-node-1-0","profile":"2g.10gb",'
        '"placement":{"start":1.5,"size":2}}]',
        '[{"containerIndex":0,"deviceIndex":0,"gpuUUID":"GPU-elsewhere","profile":"2g.10gb",'
        '"placement":{"start":0,"size":2}}]',
        '[{"containerIndex":0,"deviceIndex":0,"gpuUUID":"GPU-node-1-0","profile":"2g.10gb",'
        '"placement":{"start":8,"size":2}}]',
    ],
)
def test_what_cannot_be_read_on_a_bound_pod_closes_its_node(
    state: ClusterState, written: str
) -> None:
    state.set_pod(pod("a", on="node-1", annotations={keys.POD_MIG_ALLOCATIONS: written}))
    record = state.snapshot().nodes["node-1"]
    assert text(state) == "NodeReservationMalformed"
    assert "team-a/pod-a" in record.doubts[0]
    state.remove_pod("a")
    assert isinstance(answer(state), Held)


def test_a_listed_device_without_a_reservation_closes_the_node(state: ClusterState) -> None:
    listed = encode_devices([[ListedDevice(GPU, 4864, 15)]])
    state.set_pod(pod("a", on="node-1", annotations={keys.POD_DEVICES_ALLOCATED: listed}))
    assert text(state) == "NodeReservationMalformed"


def test_a_listed_device_of_a_gpu_without_mig_is_no_doubt() -> None:
    state = ClusterState(SchedulingPolicy())
    gpus = (a100_40gb(GPU), a100_40gb("GPU-plain", 1, mode="hami-core", profiles=()))
    state.set_node(node("node-1", gpus))
    listed = encode_devices([[ListedDevice("GPU-plain", 4864, 15)]])
    state.set_pod(pod("a", on="node-1", annotations={keys.POD_DEVICES_ALLOCATED: listed}))
    assert isinstance(answer(state), Held)
    assert text(state, 41000) == "1/2 CardInsufficientMemory, 1/2 CardTypeMismatch"


def test_blocked_memory_slices_take_no_instance() -> None:
    state = ClusterState(SchedulingPolicy())
    foreign = BlockedInterval(GPU, Placement(4, 4), "foreign instance")
    state.set_node(node("node-1", blocked=[foreign]))
    found = answer(state, 20000)
    assert isinstance(found, Held)
    assert found.hold.reservations[0].placement == Placement(0, 4)
    assert state.snapshot().nodes["node-1"].gpus[0].blocked == (foreign,)


def test_a_profile_that_is_no_longer_allowed_still_occupies() -> None:
    state = ClusterState(SchedulingPolicy())
    state.set_node(node("node-1"))
    state.set_pod(pod("a", on="node-1", reservations=[at(0, 4, "4g.20gb")]))
    assert mask(state) == 0b1111
    assert isinstance(answer(state), Held)


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (node("node-1", ready=False), "NodeCapabilityStale"),
        (node("node-1", allocatable={"cpu": "8"}), "NodeCapabilityStale"),
        (node("node-1", allocatable={"nvidia.com/gpu": "0"}), "NodeCapabilityStale"),
        (node("node-1", register=""), "node unregistered"),
        (node("node-1", register="[]"), "node unregistered"),
        (node("node-1", register="[1]"), "node unregistered"),
        (node("node-1", cordon=f" {GPU} , "), "1/1 CardCordoned"),
        (node("node-1", [a100_40gb(GPU, healthy=False)]), "1/1 CardNotHealth"),
        (node("node-1", [a100_40gb(GPU, mode="hami-core")]), "1/1 CardTypeMismatch"),
        (node("node-1", [a100_40gb(GPU, profiles=())]), "1/1 CardMigTopologyInfeasible"),
    ],
)
def test_a_node_that_takes_nothing_says_why(
    state: ClusterState, view: object, expected: str
) -> None:
    state.set_node(view)  # type: ignore[arg-type]
    assert text(state) == expected


def test_a_node_is_open_again_when_its_facts_are(state: ClusterState) -> None:
    state.set_node(node("node-1", cordon=GPU))
    state.set_node(node("node-1", allocatable={"nvidia.com/gpu": 7}))
    assert isinstance(answer(state), Held)


def test_a_gpu_with_a_wrong_capability_leaves_the_others_to_work() -> None:
    state = ClusterState(SchedulingPolicy())
    twice = a100_40gb("GPU-bad").profiles * 2
    state.set_node(node("node-1", [a100_40gb("GPU-bad", profiles=twice), a100_40gb(GPU, 1)]))
    record = state.snapshot().nodes["node-1"]
    ((uuid, error),) = record.refused
    assert uuid == "GPU-bad"
    assert "node node-1" in str(error)
    assert "1g.5gb" in str(error)
    assert isinstance(answer(state), Held)
    assert text(state, 41000) == "1/2 CardInsufficientMemory, 1/2 CardMigCapabilityInvalid"


def test_a_node_that_left_takes_nothing_and_returns_with_its_pods(state: ClusterState) -> None:
    state.set_pod(pod("a", on="node-1", reservations=[at(2)]))
    state.remove_node("node-1")
    assert text(state) == "node unregistered"
    state.replace_nodes([node("node-1")])
    assert mask(state) == 0b1100
    state.replace_nodes([])
    assert state.snapshot().nodes == {}


def test_a_hold_becomes_the_bound_pods_reservation_without_a_gap(state: ClusterState) -> None:
    view = pod("a", 9000)
    found = state.filter(view, request_of(view), ["node-1"])
    assert isinstance(found, Held)
    before = mask(state)
    state.mark_binding("a")
    state.set_pod(view)
    state.confirm("a")
    assert (mask(state), state.hold_of("a")) == (before, found.hold)
    state.set_pod(bound(view, found.hold))
    assert (mask(state), state.hold_of("a")) == (before, None)
    state.release("a")
    assert mask(state) == before
    state.remove_pod("a")
    assert mask(state) == 0


def test_a_snapshot_never_changes_and_is_shared_until_something_does(state: ClusterState) -> None:
    before = state.snapshot()
    assert state.snapshot() is before
    state.set_pod(pod("a", on="node-1", reservations=[at(2)]))
    after = state.snapshot()
    assert after.version > before.version
    assert before.nodes["node-1"].gpus[0].claims == ()


def test_a_repeated_observation_changes_nothing(state: ClusterState) -> None:
    state.set_pod(pod("a", on="node-1", reservations=[at(2)]))
    before = state.snapshot()
    state.set_pod(pod("a", on="node-1", reservations=[at(2)]))
    state.set_node(node("node-1"))
    state.replace_nodes([node("node-1")])
    state.replace_pods([pod("a", on="node-1", reservations=[at(2)])])
    assert state.snapshot() is before


def test_a_change_renews_only_its_node() -> None:
    state = ClusterState(SchedulingPolicy())
    state.set_node(node("node-1", a100s("node-1", 2)))
    state.set_node(node("node-2"))
    before = state.snapshot().nodes
    state.set_pod(pod("a", on="node-1", reservations=[at(2)]))
    after = state.snapshot().nodes
    assert after["node-2"] is before["node-2"]
    assert after["node-1"].gpus[1] is before["node-1"].gpus[1]


def test_subscribers_hear_of_changes_until_they_leave(state: ClusterState) -> None:
    heard: list[int] = []
    leave = state.subscribe(heard.append)
    state.set_pod(pod("a", on="node-1", reservations=[at(2)]))
    state.set_pod(pod("a", on="node-1", reservations=[at(2)]))
    leave()
    leave()
    state.remove_pod("a")
    assert len(heard) == 1
