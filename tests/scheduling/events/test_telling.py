"""Reservations that are wrong: an event and a log line once, again rarely, never a flood."""

from __future__ import annotations

import logging

import pytest

from hami_web.core.policy import SchedulingPolicy
from hami_web.scheduling.events import EventReason
from hami_web.scheduling.problems import ProblemCode, ReservationProblem
from hami_web.scheduling.records import PodIdentity
from hami_web.scheduling.state import ClusterState
from hami_web.scheduling.telling import REMIND_S, TOLD_AT_ONCE, ProblemTeller, StateProblems
from tests.builders import reservation
from tests.scheduling.state.cluster import node, pod

GPU = "GPU-node-1-0"


class Source:
    def __init__(self):
        self.version = 0
        self.found = []

    def problems(self):
        return list(self.found)

    def set(self, *found):
        self.version += 1
        self.found = found


class Events:
    def __init__(self):
        self.recorded = []

    def record(self, pod, reason, note):
        self.recorded.append((pod.name, reason, note))


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def problem(name, code=ProblemCode.MALFORMED, text="cannot be read"):
    return ReservationProblem(PodIdentity("team-a", name, f"uid-{name}"), "n1", code, text)


@pytest.fixture
def source():
    return Source()


@pytest.fixture
def events():
    return Events()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def teller(source, events, clock):
    return ProblemTeller((source,), events, clock=clock)


def turn(teller):
    teller.look()
    teller.tell()


def test_a_problem_is_told_once_on_its_pod_and_in_the_log(teller, source, events, caplog):
    caplog.set_level(logging.INFO, "hami_web.scheduling.telling")
    source.set(problem("a"))
    for _ in range(3):
        turn(teller)
    assert events.recorded == [("a", EventReason.RESERVATION_MALFORMED, "cannot be read")]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    source.set()
    turn(teller)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert teller.present() == []


def test_another_text_is_told_as_well(teller, source, events):
    source.set(problem("a"))
    turn(teller)
    source.set(problem("a", text="still cannot be read"))
    turn(teller)
    assert [note for _, _, note in events.recorded] == ["cannot be read", "still cannot be read"]


def test_one_that_stays_is_told_again_before_its_event_expires(
    teller, source, events, clock, caplog
):
    source.set(problem("a"))
    turn(teller)
    clock.now = REMIND_S + 1
    turn(teller)
    assert len(events.recorded) == 2
    assert len(caplog.records) == 1


def test_many_at_once_are_told_in_turns(teller, source, events):
    source.set(*(problem(f"p{number:03}") for number in range(TOLD_AT_ONCE + 5)))
    turn(teller)
    assert len(events.recorded) == TOLD_AT_ONCE
    turn(teller)
    assert len({name for name, _, _ in events.recorded}) == TOLD_AT_ONCE + 5


def test_a_replica_that_only_looks_tells_nothing(teller, source, events):
    source.set(problem("a"))
    teller.look()
    assert (len(teller.present()), events.recorded) == (1, [])


def found_in(state):
    return {(item.pod.uid, item.code, item.gpu_uuid) for item in StateProblems(state).problems()}


def test_the_state_names_the_pods_behind_doubts_and_overlaps():
    state = ClusterState(SchedulingPolicy())
    state.set_node(node("node-1"))
    wide = reservation(gpu=GPU, name="3g.20gb", start=0, size=4)
    state.set_pod(pod("a", on="node-1", reservations=[reservation(gpu=GPU, start=0)]))
    assert found_in(state) == set()
    state.set_pod(pod("b", on="node-1", reservations=[wide]))
    assert found_in(state) == {(uid, ProblemCode.OVERLAPPING, GPU) for uid in "ab"}
    text = {item.pod.uid: item.text for item in StateProblems(state).problems()}
    assert text["a"].endswith(
        "2g.10gb at 0:2 of GPU-node-1-0 overlaps what is reserved for team-a/pod-b"
    )
    beyond = reservation(gpu="GPU-gone", start=0)
    state.set_pod(pod("b", on="node-1", reservations=[beyond]))
    state.set_pod(pod("c", on="node-1", annotations={"hami.io/vgpu-mig-allocations": "[{"}))
    assert found_in(state) == {
        ("b", ProblemCode.MISPLACED, "GPU-gone"),
        ("c", ProblemCode.MALFORMED, ""),
    }
    state.replace_pods([])
    assert found_in(state) == set()
