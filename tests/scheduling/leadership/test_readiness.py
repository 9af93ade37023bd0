"""When this process may decide: it leads, its lists are of its own term, and it hears the API."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from hami_web.core.policy import SchedulingPolicy
from hami_web.scheduling.decider import Core, Decider
from hami_web.scheduling.decision_log import DecisionLog
from hami_web.scheduling.decisions import Fits, NotReady
from hami_web.scheduling.leadership import Term
from hami_web.scheduling.readiness import SILENCE_MOST_S, Readiness
from hami_web.scheduling.state import ClusterState
from hami_web.scheduling.waiting import WaitingPods
from tests.scheduling.state.cluster import node, pod


@dataclass
class Leader:
    current: Term | None = field(default_factory=lambda: Term(3, 100.0))

    def term(self):
        return self.current

    def leader(self):
        return "other" if self.current is None else "me"


@dataclass
class Watch:
    """A reflector whose last complete list began at a moment, heard some seconds ago."""

    name: str
    listed_at: float = 101.0
    age: float | None = 1.0
    synced: threading.Event = field(default_factory=threading.Event)
    problem: str = ""

    def __post_init__(self):
        self.synced.set()

    def listed_since(self, moment):
        return self.listed_at >= moment

    def age_s(self):
        return self.age


@pytest.fixture
def leader():
    return Leader()


@pytest.fixture
def watches():
    return [Watch("nodes"), Watch("pods")]


@pytest.fixture
def readiness(leader, watches):
    return Readiness(leader, watches)


def test_a_leader_that_knows_the_cluster_decides(readiness):
    assert readiness.not_ready_because() is None


def test_a_standby_names_the_leader_and_is_not_stale(readiness, leader):
    leader.current = None
    assert "other leads" in readiness.not_ready_because()
    assert readiness.stale_because() is None


@pytest.mark.parametrize("position", [0, 1])
def test_a_list_that_began_before_the_term_does_not_count_for_it(readiness, watches, position):
    watches[position].listed_at = 99.0
    why = readiness.not_ready_because()
    assert watches[position].name in why
    assert "term 3" in why


@pytest.mark.parametrize("position", [0, 1])
def test_an_api_server_that_was_not_heard_for_too_long_ends_deciding(readiness, watches, position):
    watches[position].age = SILENCE_MOST_S + 1
    assert "was not heard" in readiness.not_ready_because()
    assert "was not heard" in readiness.stale_because()
    watches[position].age = SILENCE_MOST_S - 1
    assert readiness.not_ready_because() is None


def test_without_a_first_list_nothing_is_known(readiness, watches):
    watches[1].synced.clear()
    assert "first list of pods" in readiness.stale_because()
    watches[1].problem = "ApiServerForbids: GET /api/v1/pods: 403"
    assert readiness.stale_because().startswith(
        "ApiServerForbids: GET /api/v1/pods: 403; the first"
    )


class Events:
    def record(self, *_event):
        pass


def test_while_nothing_may_be_decided_a_filter_is_refused_and_holds_nothing(readiness, watches):
    state, waiting = ClusterState(SchedulingPolicy()), WaitingPods()
    state.set_node(node("node-1"))
    core = Core(state, waiting, None, Events(), DecisionLog(), readiness.not_ready_because)
    decider = Decider(core, notice=lambda: None)
    watches[0].age = SILENCE_MOST_S + 1
    view = pod("asking", 4000)
    with pytest.raises(NotReady, match="was not heard"):
        decider.filter(view, ("node-1",))
    waiting.add(view, ("node-1",))
    assert not decider.hold_if_free(waiting.in_order()[0])
    assert (list(state.snapshot().claims()), len(core.log)) == ([], 0)
    watches[0].age = 0.0
    assert decider.filter(view, ("node-1",)) == Fits(("node-1",))
