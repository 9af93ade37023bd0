"""Liveness of node agents by their Leases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hami_web.cluster.views import LeaseFields, LeaseView, ObjectMeta
from hami_web.core.liveness import agent_lease_name
from hami_web.scheduling.agents import AgentLeases

START = datetime(2026, 5, 1, tzinfo=UTC)


class States:
    def __init__(self):
        self.alive = {}

    def set_agent(self, node, alive):
        self.alive[node] = alive


class Time:
    def __init__(self):
        self.seconds = 1000.0

    def clock(self):
        return self.seconds

    def now(self):
        return START + timedelta(seconds=self.seconds - 1000)


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def states():
    return States()


@pytest.fixture
def agents(states, time):
    return AgentLeases(states, clock=time.clock, now=time.now)


def lease(at=START, node="n1", holder=None, uid="u1"):
    moment = at if isinstance(at, str) or at is None else at.isoformat()
    fields = LeaseFields(node if holder is None else holder, 30, moment, moment, 0)
    return LeaseView(ObjectMeta(agent_lease_name(node), "hami-system", uid), fields)


def test_an_agent_that_renews_is_alive(agents, states, time):
    agents.put(lease())
    for _ in range(10):
        time.seconds += 20
        agents.put(lease(time.now()))
        agents.tick()
        assert states.alive == {"n1": True}


def test_an_agent_that_stops_renewing_is_dead_after_the_lease(agents, states, time):
    agents.put(lease())
    time.seconds += 29
    agents.tick()
    assert states.alive == {"n1": True}
    time.seconds += 2
    agents.tick()
    assert states.alive == {"n1": False}
    assert agents.dead() == ["n1"]


def test_an_agent_that_gives_its_lease_up_is_dead_at_once_and_back_when_it_takes_it(
    agents, states, time
):
    agents.put(lease())
    agents.put(lease(holder=""))
    assert states.alive == {"n1": False}
    time.seconds += 3
    agents.put(lease(time.now()))
    assert states.alive == {"n1": True}


def test_a_lease_given_up_before_it_was_ever_seen_closes_its_node(agents, states):
    agents.replace([lease(holder="")], listed_at=0)
    assert states.alive == {"n1": False}


def test_an_old_lease_seen_for_the_first_time_waits_for_a_renewal(agents, states, time):
    agents.replace([lease(START - timedelta(hours=1))], listed_at=0)
    assert states.alive == {"n1": False}
    time.seconds += 5
    agents.put(lease(time.now() - timedelta(hours=1)))
    assert states.alive == {"n1": True}


@pytest.mark.parametrize("ahead", [timedelta(hours=9), timedelta(seconds=1)])
def test_an_agent_whose_clock_is_ahead_is_not_alive_for_longer(agents, states, time, ahead):
    agents.put(lease(START + ahead))
    assert states.alive == {"n1": True}
    time.seconds += 31
    agents.tick()
    assert states.alive == {"n1": False}


@pytest.mark.parametrize("text", [None, "", "not-a-time", "2026-05-01T00:00:00"])
def test_a_time_that_cannot_be_read_means_unknown_until_it_changes(agents, states, time, text):
    agents.put(lease(text))
    assert states.alive == {"n1": False}
    agents.put(lease(time.now()))
    assert states.alive == {"n1": True}


def test_a_repeated_list_does_not_renew(agents, states, time):
    agents.put(lease())
    time.seconds += 31
    agents.replace([lease()], listed_at=0)
    assert states.alive == {"n1": False}


def test_without_its_lease_the_nodes_own_facts_decide(agents, states, time):
    agents.put(lease())
    agents.remove(lease().metadata)
    assert states.alive == {"n1": None}
    agents.put(lease(time.now(), uid="u2"))
    agents.replace([], listed_at=0)
    assert states.alive == {"n1": None}


def test_a_lease_speaks_for_the_node_it_is_named_after_only(agents, states):
    agents.put(lease(holder="n2"))
    assert states.alive == {}
