"""Nodes that close and open again by their agents' Leases, through the whole state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hami_web.core import annotations as keys
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.reasons import Reason
from hami_web.scheduling.decisions import refused_everywhere
from hami_web.scheduling.state import ClusterState, Held
from tests.scheduling.state.cluster import a100s, bound, node, pod, request_of


@pytest.fixture
def state():
    state = ClusterState(SchedulingPolicy())
    state.set_node(node("n1", a100s("n1", 1)))
    return state


def choose(state, name="job"):
    wanted = pod(name, 4000)
    return state.filter(wanted, request_of(wanted), ["n1"])


def test_a_dead_agents_node_takes_no_new_work_and_keeps_its_reservations(state):
    answer = choose(state)
    assert isinstance(answer, Held)
    state.set_pod(bound(pod("job", 4000), answer.hold))
    state.set_agent("n1", alive=False)
    assert choose(state, "next").reasons == {"n1": "NodeCapabilityStale"}
    assert len(list(state.snapshot().claims())) == 1


@pytest.mark.parametrize(
    ("labels", "told", "sign"),
    [
        ({"nvidia.com/mig.config": "all-disabled"}, "", "nvidia.com/mig.config=all-disabled"),
        ({"nvidia.com/mig.config.state": "rebooting"}, "", "nvidia.com/mig.config.state=rebooting"),
        (
            {"nvidia.com/gpu.deploy.dcgm": "paused-for-mig-change"},
            "",
            "nvidia.com/gpu.deploy.dcgm=paused-for-mig-change",
        ),
        ({}, "Pod ops/m (MIG Manager)", "Pod ops/m (MIG Manager)"),
    ],
)
def test_beside_another_owner_nothing_new_is_placed_and_what_is_reserved_stays(
    state, labels, told, sign
):
    answer = choose(state)
    state.set_pod(bound(pod("job", 4000), answer.hold))
    shared = node("n1", a100s("n1", 1), labels=labels)
    shared.metadata.annotations[keys.NODE_MIG_OWNER] = told
    state.set_node(shared)
    refused = choose(state, "next")
    (text,) = refused.reasons.values()
    assert text.startswith("NodeOtherMigOwner: something else may change the MIG layout: ")
    assert sign in text
    assert "by its controller" in text or "let MIG Manager finish" in text
    assert refused_everywhere(refused.details).unresolvable == {"n1": text}
    assert len(list(state.snapshot().claims())) == 1
    state.set_node(node("n1", a100s("n1", 1), labels={"nvidia.com/mig.config.state": "success"}))
    assert isinstance(choose(state, "next"), Held)
    assert len(list(state.snapshot().claims())) == 2


def test_a_capability_of_templates_is_of_another_owner(state):
    legacy = replace(*a100s("n1", 1), extra={"migtemplate": [{"name": "1g.5gb"}]})
    state.set_node(node("n1", [legacy]))
    (text,) = choose(state).reasons.values()
    assert "migtemplate" in text
    state.set_agent("n1", alive=False)
    assert choose(state).reasons == {"n1": "NodeCapabilityStale"}


def test_a_hold_on_a_node_that_closed_is_not_repeated(state):
    assert isinstance(choose(state), Held)
    state.set_agent("n1", alive=False)
    assert not isinstance(choose(state), Held)
    assert list(state.snapshot().claims()) == []


@pytest.mark.parametrize("alive", [True, None])
def test_an_agent_that_is_back_opens_its_node(state, alive):
    state.set_agent("n1", alive=False)
    state.set_agent("n1", alive=alive)
    assert isinstance(choose(state), Held)


def test_a_node_that_is_seen_after_its_lease_is_closed_as_well(state):
    state.set_agent("n2", alive=False)
    state.set_node(node("n2", a100s("n2", 1)))
    assert state.snapshot().nodes["n2"].closed is Reason.NODE_STALE


def test_a_node_that_changes_stays_closed(state):
    state.set_agent("n1", alive=False)
    state.set_node(node("n1", a100s("n1", 2)))
    assert state.snapshot().nodes["n1"].closed is Reason.NODE_STALE


def test_a_closed_node_stays_closed_when_pods_leave_and_come(state):
    answer = choose(state)
    state.set_agent("n1", alive=False)
    state.set_pod(bound(pod("job", 4000), answer.hold))
    assert state.snapshot().nodes["n1"].closed is Reason.NODE_STALE
    state.remove_pod("job")
    assert state.snapshot().nodes["n1"].closed is Reason.NODE_STALE


def test_a_gpu_that_vanishes_with_reservations_closes_its_node_until_it_is_back(state):
    state.set_node(node("n1", a100s("n1", 2)))
    answer = choose(state)
    state.set_pod(bound(pod("job", 4000), answer.hold))
    [item] = answer.hold.reservations
    left = [gpu for gpu in a100s("n1", 2) if gpu.uuid != item.gpu_uuid]
    state.set_node(node("n1", left))
    record = state.snapshot().nodes["n1"]
    assert record.closed is Reason.NODE_DOUBT
    assert "team-a/pod-job" in record.doubts[0]
    assert item.gpu_uuid in record.doubts[0]
    state.set_node(node("n1", a100s("n1", 2)))
    record = state.snapshot().nodes["n1"]
    assert (record.closed, record.doubts) == (None, ())
    assert [claim.pod.uid for claim in record.gpu(item.gpu_uuid).claims] == ["job"]


def test_gpus_that_change_their_order_keep_their_reservations(state):
    first, second = a100s("n1", 2)
    state.set_node(node("n1", (first, second)))
    answer = choose(state)
    state.set_pod(bound(pod("job", 4000), answer.hold))
    [item] = answer.hold.reservations
    swapped = (replace(second, index=0), replace(first, index=1))
    state.set_node(node("n1", swapped))
    record = state.snapshot().nodes["n1"]
    assert record.closed is None
    assert [len(gpu.claims) for gpu in record.gpus] == [
        int(gpu.uuid == item.gpu_uuid) for gpu in swapped
    ]


def test_a_deleted_pods_node_that_comes_back_is_free(state):
    answer = choose(state)
    state.set_pod(bound(pod("job", 4000), answer.hold))
    state.remove_node("n1")
    state.remove_pod("job")
    state.set_node(node("n1", a100s("n1", 1)))
    assert list(state.snapshot().claims()) == []
    assert isinstance(choose(state, "next"), Held)
