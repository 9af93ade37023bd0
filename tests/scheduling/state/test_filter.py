"""What ``/filter`` decides, and what it never does."""

from __future__ import annotations

import pytest

from hami_web.cluster.views import PodView
from hami_web.core.policy import SchedulingPolicy
from hami_web.scheduling.state import ClusterState, Held, Refused
from tests.boards import board
from tests.scheduling.state.cluster import a100s, bound, node, pod, request_of


@pytest.fixture
def state() -> ClusterState:
    state = ClusterState(SchedulingPolicy())
    state.set_node(node("node-1"))
    return state


def ask(state: ClusterState, view: PodView, *names: str) -> Held | Refused:
    return state.filter(view, request_of(view), names or ("node-1",))


def held(state: ClusterState, view: PodView, *names: str) -> Held:
    answer = ask(state, view, *names)
    assert isinstance(answer, Held)
    return answer


def places(answer: Held) -> list[str]:
    return [f"{r.profile}@{r.placement.start}" for r in answer.hold.reservations]


def test_a_small_instance_leaves_the_largest_region_open(state: ClusterState) -> None:
    assert places(held(state, pod("a", 4000))) == ["1g.5gb@6"]


def test_a_choice_is_counted_at_once(state: ClusterState) -> None:
    taken = [places(held(state, pod(f"p{n}", 4000)))[0] for n in range(7)]
    assert sorted(taken) == [f"1g.5gb@{n}" for n in range(7)]
    assert isinstance(ask(state, pod("p7", 4000)), Refused)


def test_the_same_pod_gets_the_same_answer(state: ClusterState) -> None:
    first = held(state, pod("a", 9000))
    assert held(state, pod("a", 9000)).hold == first.hold


def test_a_pod_that_lost_its_node_is_planned_anew(state: ClusterState) -> None:
    held(state, pod("a", 40000))
    state.set_node(node("node-2"))
    assert held(state, pod("a", 40000), "node-2").node == "node-2"
    assert held(state, pod("b", 40000), "node-1").node == "node-1"


def test_a_bound_pod_is_never_moved(state: ClusterState) -> None:
    view = pod("a", 9000)
    first = held(state, view).hold
    state.confirm("a")
    state.set_node(node("node-2"))
    state.set_pod(bound(view, first))
    again = held(state, bound(view, first), "node-1", "node-2")
    assert (again.node, again.hold.reservations) == ("node-1", first.reservations)
    assert isinstance(ask(state, bound(view, first), "node-2"), Refused)


def test_the_device_lists_carry_the_profiles_figures(state: ClusterState) -> None:
    devices = held(state, pod("a", 9000, 4000)).hold.devices
    assert [[(d.memory_mib, d.core_percent) for d in container] for container in devices] == [
        [(9984, 29)],
        [(4864, 15)],
    ]


def test_a_refused_node_says_why_per_gpu(state: ClusterState) -> None:
    state.set_node(node("node-2", a100s("node-2", 2), cordon="GPU-node-2-1"))
    held(state, pod("a", 4000), "node-2")
    answer = ask(state, pod("b", 40000), "node-2", "node-3")
    assert isinstance(answer, Refused)
    assert answer.reasons == {
        "node-2": "1/2 CardCordoned, 1/2 CardInsufficientMemory",
        "node-3": "node unregistered",
    }


def test_more_devices_than_a_node_holds_are_refused_with_the_number_that_fits(
    state: ClusterState,
) -> None:
    answer = ask(state, pod("a", 4000, count=8))
    assert isinstance(answer, Refused)
    assert answer.reasons == {"node-1": "7/1 AllocatedCardsInsufficientRequest"}


def test_equal_profiles_share_what_was_worked_out(state: ClusterState) -> None:
    first = state._rankings.index(request_of(pod("a", 4000)), state.policy)
    second = state._rankings.index(request_of(pod("b", 4500)), state.policy)
    other = state._rankings.index(request_of(pod("c", 9000)), state.policy)
    assert first is second
    assert first is not other


def test_a_new_model_tells_demands_apart_again(state: ClusterState) -> None:
    from_small = state._rankings.index(request_of(pod("a", 4800)), state.policy)
    state.set_node(node("node-2", [board("a30", "GPU-30")]))
    assert held(state, pod("b", 5900), "node-2").hold.reservations[0].profile == "1g.6gb"
    assert state._rankings.index(request_of(pod("c", 5900)), state.policy) is not from_small
