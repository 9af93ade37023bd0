"""What-if says what ``/filter`` does."""

from __future__ import annotations

import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from hami_web.cluster.views import PodView
from hami_web.core import annotations as keys
from hami_web.core.placement import Placement
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.request import parse_pod_request
from hami_web.core.reservation import Reservation
from hami_web.planning.records import read_records
from hami_web.planning.whatif import Answer, Question, ask
from hami_web.scheduling.decider import Core, Decider
from hami_web.scheduling.decision_log import DecisionLog
from hami_web.scheduling.decisions import Fits
from hami_web.scheduling.events import EventRecorder
from hami_web.scheduling.refusal import Refused
from hami_web.scheduling.state import ClusterState
from hami_web.scheduling.waiting import WaitingPods
from tests.boards import board

from .clusters import Cluster, annotations, asking, bound, clusters, limits, node, policies

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(300)]
MEMORY = {keys.RESOURCE_COUNT: 1, keys.RESOURCE_MEMORY: 20000}


def decider_of(state: ClusterState) -> Decider:
    events = EventRecorder(None, "test")  # type: ignore[arg-type]  # never started
    waiting, log = WaitingPods(), DecisionLog()
    core = Core(state, waiting, None, events, log, lambda: None)  # type: ignore[arg-type]
    return Decider(core, notice=lambda: None)


def answer_of(pod: PodView, policy: SchedulingPolicy, pods: int = 1, **more: object) -> Answer:
    request = parse_pod_request(pod.container_specs(), pod.annotations)
    return ask(read_records(), Question(request, pods, **more), policy)  # type: ignore[arg-type]


@given(clusters(), st.lists(limits(), min_size=1, max_size=2), annotations, policies, st.data())
def test_it_names_the_places_that_the_extender_holds(cluster, asked, notes, policy, data) -> None:
    pods = data.draw(st.integers(1, 4))
    with transaction.atomic():
        cluster.mirror()
        answer = answer_of(asking("what-if", *asked, annotations=notes), policy, pods)
        transaction.set_rollback(True)
    state = cluster.extender(policy)
    decider, names = decider_of(state), cluster.offered()
    for number, place in enumerate(answer.placed):
        pod = asking(f"p{number}", *asked, annotations=notes)
        assert decider.filter(pod, names) == Fits((place.node,))
        hold = state.hold_of(pod.uid)
        assert hold is not None
        assert hold.reservations == place.choice.reservations
    if answer.obstacle is not None:
        last = asking("last", *asked, annotations=notes)
        assert not isinstance(decider.filter(last, names), Fits)
        request = parse_pod_request(last.container_specs(), last.annotations)
        refused = state.filter(last, request, names)
        assert isinstance(refused, Refused)
        nearest, found = refused.nearest, answer.obstacle.in_the_way
        if nearest is not None and not answer.placed:
            assert found is not None
            assert (found.blockers.gpu_uuid, found.blockers.placement) == (
                nearest.gpu_uuid,
                nearest.placement,
            )
            assert answer.obstacle.smaller == nearest.smaller
            assert answer.obstacle.fragmented == nearest.fragmented


@given(clusters(), limits(), policies)
def test_a_pod_fits_once_what_is_in_the_way_has_ended(cluster, asked, policy) -> None:
    with transaction.atomic():
        cluster.mirror()
        answer = answer_of(asking("what-if", asked), policy)
        obstacle = answer.obstacle
        if obstacle is not None and obstacle.in_the_way is not None:
            ended = {claim.pod.uid for claim in obstacle.in_the_way.claims}
            cluster.pods = [pod for pod in cluster.pods if pod.uid not in ended]
            state = cluster.extender(policy)
            found = decider_of(state).filter(asking("after", asked), cluster.offered())
            assert isinstance(found, Fits)
        transaction.set_rollback(True)


def full_node() -> Cluster:
    gpu = board(uuid="GPU-A")
    pods = [
        bound("a", "n1", [Reservation(0, 0, "GPU-A", "1g.5gb", Placement(0, 1))]),
        bound("b", "n1", [Reservation(0, 0, "GPU-A", "1g.5gb", Placement(5, 1))]),
    ]
    return Cluster([node("n1", (gpu,))], pods)


def test_one_small_pod_is_in_the_way_of_a_large_one() -> None:
    full_node().mirror()
    answer = answer_of(asking("w", MEMORY), SchedulingPolicy())
    obstacle = answer.obstacle
    assert answer.placed == ()
    assert obstacle is not None
    assert obstacle.nodes == {"CardMigTopologyInfeasible": ["n1"]}
    assert obstacle.in_the_way is not None
    assert [claim.pod.name for claim in obstacle.in_the_way.claims] == ["a"]
    assert obstacle.smaller is not None
    assert obstacle.smaller.profile == "2g.10gb"
    assert obstacle.fragmented


def test_nothing_is_called_smaller_than_a_profile_that_no_gpu_has() -> None:
    full_node().mirror()
    for profile, smaller in (("3g.20gb", "2g.10gb"), ("3g.40gb", None)):
        pod = asking("w", {keys.RESOURCE_COUNT: 1}, annotations={keys.POD_PROFILE: profile})
        obstacle = answer_of(pod, SchedulingPolicy()).obstacle
        assert obstacle is not None
        assert (obstacle.smaller and obstacle.smaller.profile) == smaller


def test_two_devices_are_asked_of_one_gpu_with_all_that_must_end() -> None:
    full_node().mirror()
    two = MEMORY | {keys.RESOURCE_COUNT: 2}
    obstacle = answer_of(asking("w", two), SchedulingPolicy()).obstacle
    assert obstacle is not None
    assert obstacle.in_the_way is not None
    assert obstacle.in_the_way.exact
    assert [claim.pod.name for claim in obstacle.in_the_way.claims] == ["a", "b"]


def test_only_the_nodes_that_are_allowed_are_asked() -> None:
    Cluster([node("n1", (board(uuid="A"),)), node("n2", (board(uuid="B"),))]).mirror()
    answer = answer_of(asking("w", MEMORY), SchedulingPolicy(), nodes=frozenset({"n2"}))
    assert [place.node for place in answer.candidates] == ["n2"]


def test_a_cluster_is_read_in_five_queries(django_assert_num_queries) -> None:
    full_node().mirror()
    with django_assert_num_queries(5):
        assert len(read_records()["n1"].gpus[0].claims) == 2
