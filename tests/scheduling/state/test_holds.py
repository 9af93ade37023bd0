"""How long a choice stays counted."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from hami_web.core.policy import SchedulingPolicy
from hami_web.scheduling.state import ClusterState, Held, Refused
from tests.scheduling.state.cluster import node, pod, request_of


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def state(clock: Clock) -> ClusterState:
    state = ClusterState(SchedulingPolicy(hold_seconds=60), clock=clock)
    state.set_node(node("node-1"))
    return state


def hold(state: ClusterState, uid: str = "a", memory: int = 40000) -> Held | Refused:
    view = pod(uid, memory)
    return state.filter(view, request_of(view), ["node-1"])


def test_a_hold_expires(state: ClusterState, clock: Clock) -> None:
    hold(state)
    clock.now += 59
    assert state.expire_holds() == []
    clock.now += 1
    assert [gone.pod_uid for gone in state.expire_holds()] == ["a"]
    assert isinstance(hold(state, "b"), Held)


def test_asking_again_renews_a_hold(state: ClusterState, clock: Clock) -> None:
    hold(state)
    clock.now += 59
    hold(state)
    clock.now += 59
    assert state.expire_holds() == []


def test_a_hold_does_not_expire_under_a_bind(state: ClusterState, clock: Clock) -> None:
    hold(state)
    assert state.mark_binding("a") == state.hold_of("a")
    clock.now += 600
    assert state.expire_holds() == []
    assert isinstance(hold(state, "b"), Refused)


def test_a_pod_that_is_being_bound_is_not_moved(state: ClusterState) -> None:
    first = hold(state)
    state.mark_binding("a")
    state.set_node(node("node-2"))
    view = pod("a", 40000)
    answer = state.filter(view, request_of(view), ["node-2"])
    assert isinstance(answer, Refused)
    assert isinstance(first, Held)
    assert state.hold_of("a") == first.hold


def test_a_confirmed_hold_waits_for_the_watch(state: ClusterState, clock: Clock) -> None:
    hold(state)
    state.mark_binding("a")
    state.confirm("a")
    clock.now += 6000
    assert state.expire_holds() == []
    state.set_pod(pod("a", 40000))
    assert state.hold_of("a") is not None


def test_a_confirmed_hold_ends_when_a_later_list_lacks_its_pod(
    state: ClusterState, clock: Clock
) -> None:
    hold(state)
    state.confirm("a")
    state.replace_pods([], listed_at=clock.now)
    assert state.hold_of("a") is not None
    clock.now += 1
    state.replace_pods([], listed_at=clock.now)
    assert state.hold_of("a") is None
    assert isinstance(hold(state, "b"), Held)


def test_a_hold_ends_when_a_later_list_lacks_its_pod(state: ClusterState, clock: Clock) -> None:
    hold(state)
    state.replace_pods([], listed_at=clock.now)
    assert state.hold_of("a") is not None
    clock.now += 1
    state.replace_pods([pod("a", 40000)], listed_at=clock.now)
    assert state.hold_of("a") is not None
    state.replace_pods([], listed_at=clock.now)
    assert state.hold_of("a") is None
    assert isinstance(hold(state, "b"), Held)


def test_a_young_hold_survives_a_complete_list(state: ClusterState) -> None:
    hold(state)
    state.replace_pods([])
    assert state.hold_of("a") is not None
    assert isinstance(hold(state, "b"), Refused)


def test_a_failed_bind_frees_the_placement_at_once(state: ClusterState) -> None:
    hold(state)
    state.mark_binding("a")
    state.release("a")
    state.release("a")
    assert isinstance(hold(state, "b"), Held)


def test_a_deleted_pod_gives_up_its_hold(state: ClusterState) -> None:
    hold(state)
    state.remove_pod("a")
    assert state.hold_of("a") is None
    assert isinstance(hold(state, "b"), Held)


def test_a_pod_that_asks_for_something_else_is_planned_anew(state: ClusterState) -> None:
    hold(state, "a", 40000)
    answer = hold(state, "a", 4000)
    assert isinstance(answer, Held)
    assert answer.hold.reservations[0].profile == "1g.5gb"
    assert isinstance(hold(state, "b", 20000), Held)


def test_a_hold_on_a_gpu_that_closed_is_replaced(state: ClusterState) -> None:
    hold(state)
    state.set_node(node("node-1", cordon="GPU-node-1-0"))
    assert isinstance(hold(state), Refused)
    assert state.hold_of("a") is None


def test_all_holds_can_be_given_up_for_a_new_leader(state: ClusterState) -> None:
    hold(state)
    state.release_holds()
    assert isinstance(hold(state, "b"), Held)


def test_a_pod_without_a_hold_has_none(state: ClusterState) -> None:
    assert state.hold_of("nobody") is None
    assert state.mark_binding("nobody") is None
    state.confirm("nobody")
    state.release("nobody")
