"""Namespace quotas for GPU memory and cores."""

from __future__ import annotations

import pytest

from hami_web.core.errors import InvalidRequest
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.quota import NamespaceQuota, parse_quota
from hami_web.scheduling.state import ClusterState, Held, Refused
from tests.builders import reservation
from tests.scheduling.state.cluster import bound, node, pod, request_of


@pytest.fixture
def state() -> ClusterState:
    state = ClusterState(SchedulingPolicy())
    state.set_node(node("node-1"))
    return state


def quota(memory: int | None = None, cores: int | None = None) -> NamespaceQuota:
    return NamespaceQuota("team-a", "gpu", memory, cores)


def ask(state: ClusterState, uid: str, memory: int = 4000, count: int = 1) -> Held | Refused:
    view = pod(uid, memory, count=count)
    return state.filter(view, request_of(view), ["node-1"])


def test_a_namespace_gets_no_more_than_its_quota(state: ClusterState) -> None:
    state.set_quota(quota(memory=10000))
    assert isinstance(ask(state, "a"), Held)
    assert isinstance(ask(state, "b"), Held)
    answer = ask(state, "c")
    assert isinstance(answer, Refused)
    assert answer.reasons == {"node-1": "1/1 ResourceQuotaNotFit"}
    assert answer.nearest is None


def test_cores_are_limited_too(state: ClusterState) -> None:
    state.set_quota(quota(cores=30))
    assert isinstance(ask(state, "a", count=3), Refused)
    assert isinstance(ask(state, "a", count=2), Held)


def test_what_ran_before_the_quota_counts(state: ClusterState) -> None:
    item = reservation(gpu="GPU-node-1-0", start=0)
    state.replace_pods([pod("old", on="node-1", reservations=[item])])
    state.set_quota(quota(memory=14000))
    assert isinstance(ask(state, "a", 4000), Refused)
    state.remove_pod("old")
    assert isinstance(ask(state, "a", 4000), Held)


def test_a_bound_pod_counts_once(state: ClusterState) -> None:
    state.set_quota(quota(memory=10000))
    view = pod("a", 4000)
    held = state.filter(view, request_of(view), ["node-1"])
    assert isinstance(held, Held)
    state.confirm("a")
    state.set_pod(bound(view, held.hold))
    state.replace_pods([bound(view, held.hold)])
    state.set_node(node("node-1", allocatable={"nvidia.com/gpu": 7}))
    assert isinstance(ask(state, "b"), Held)
    assert isinstance(ask(state, "c"), Refused)


def test_what_is_given_up_is_free_again(state: ClusterState) -> None:
    state.set_quota(quota(memory=5000))
    ask(state, "a")
    state.release("a")
    assert isinstance(ask(state, "b"), Held)


def test_a_quota_that_is_gone_limits_nothing(state: ClusterState) -> None:
    state.replace_quotas([quota(memory=0), NamespaceQuota("team-b", "gpu", 0)])
    assert isinstance(ask(state, "a"), Refused)
    state.replace_quotas([NamespaceQuota("team-b", "gpu", 0)])
    assert isinstance(ask(state, "a"), Held)
    state.remove_quota("team-b", "gpu")
    state.remove_quota("team-b", "gpu")


def test_the_strictest_of_several_quotas_counts(state: ClusterState) -> None:
    state.set_quota(NamespaceQuota("team-a", "wide", memory_mib=100000))
    state.set_quota(NamespaceQuota("team-a", "narrow", memory_mib=1))
    assert isinstance(ask(state, "a"), Refused)


def test_a_pod_that_came_before_its_node_counts_when_the_node_is_known() -> None:
    state = ClusterState(SchedulingPolicy())
    state.set_quota(quota(memory=10000))
    item = reservation(gpu="GPU-node-1-0", start=0)
    state.set_pod(pod("old", on="node-1", reservations=[item]))
    state.set_node(node("node-1"))
    assert isinstance(ask(state, "a"), Refused)


def test_a_resource_quota_is_read() -> None:
    hard = {"limits.nvidia.com/gpumem": "10k", "limits.nvidia.com/gpucores": 30, "pods": "5"}
    assert parse_quota("team-a", "gpu", hard) == NamespaceQuota("team-a", "gpu", 10000, 30)
    assert parse_quota("team-a", "pods", {"pods": "5"}) is None
    with pytest.raises(InvalidRequest, match=r"team-a/gpu: limits\.nvidia\.com/gpumem"):
        parse_quota("team-a", "gpu", {"limits.nvidia.com/gpumem": "1.5"})
