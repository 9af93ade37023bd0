"""Every exit of a bind, whichever of its calls goes wrong: nothing is left of what is not bound."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from hami_web.cluster.errors import (
    ClusterError,
    Conflict,
    Forbidden,
    MalformedAnswer,
    NotFound,
    OutcomeUnclear,
    ServerFailed,
    Superseded,
    TooManyRequests,
    Unreachable,
)
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.request import parse_pod_request
from hami_web.scheduling import binding as binding_module
from hami_web.scheduling.bind import Binder, BindOptions
from hami_web.scheduling.bind_queue import BindQueue
from hami_web.scheduling.errors import BindError
from hami_web.scheduling.nodelock import LockChanges, NodeLocks
from hami_web.scheduling.state import ClusterState, Held
from tests.scheduling.bind.test_bind import ORDER, Clock, Cluster, gpu_pod

CALLS = ("get_pod", "get_node", "annotate_node", "bind")
CLEAR = (
    Conflict("changed", 409),
    Forbidden("no", 403),
    NotFound("gone", 404),
    TooManyRequests("slow down", retry_after_s=0.001),
    TooManyRequests("much slower", retry_after_s=60),
    Superseded("no term"),
    Unreachable("down"),
)
UNCLEAR = (
    OutcomeUnclear("lost"),
    ServerFailed("etcd", 500),
    ServerFailed("overloaded", 503),
    MalformedAnswer("not JSON", 201),
)
FAULTS = [
    *((error, False) for error in (*CLEAR, *UNCLEAR)),
    *((error, True) for error in UNCLEAR),
]
"""Errors, and whether the call was carried out all the same."""


class Faulty(Cluster):
    """Lets calls of one kind fail from the ``first`` on, ``times`` times."""

    def __init__(self):
        super().__init__()
        self.kind, self.first, self.times = "", 0, 0
        self.error, self.is_done = None, False
        self.seen = 0

    def fault(self, kind, first, times, error, *, is_done):
        self.kind, self.first, self.times = kind, first, times
        self.error, self.is_done, self.seen = error, is_done, 0

    def mend(self):
        self.kind = ""

    def _call(self, kind, call):
        is_due = False
        if kind == self.kind:
            is_due = self.first <= self.seen < self.first + self.times
            self.seen += 1
        if not is_due:
            return call()
        if self.is_done:
            call()
        raise self.error

    def get_pod(self, namespace, name):
        return self._call("get_pod", lambda: Cluster.get_pod(self, namespace, name))

    def get_node(self, name):
        return self._call("get_node", lambda: Cluster.get_node(self, name))

    def annotate_node(self, node, annotations):
        return self._call("annotate_node", lambda: Cluster.annotate_node(self, node, annotations))

    def bind(self, binding):
        return self._call("bind", lambda: Cluster.bind(self, binding))


class World:
    """A held Pod, its binder, and what comes by itself after a bind: watch, settler, sweeper."""

    def __init__(self):
        self.cluster = Faulty()
        self.state = ClusterState(SchedulingPolicy())
        self.state.set_node(self.cluster.node)
        self.clock = Clock()
        self.later = timedelta()
        self.changes = LockChanges()
        locks = NodeLocks(self.cluster, self.changes, now=lambda: datetime.now(UTC) + self.later)
        self.locks = locks
        self.binder = Binder(
            self.cluster,
            self.state,
            locks,
            BindQueue(most_waiting=4),
            options=BindOptions(0.05),
            clock=self.clock,
        )
        self.held = self.filter(gpu_pod())

    def filter(self, pod):
        request = parse_pod_request(pod.container_specs(), {})
        return self.state.filter(pod, request, ["n1"])

    def settle(self):
        """Time goes by and the API server is well again."""
        self.cluster.mend()
        self.clock.added += 61
        self.later += timedelta(minutes=10)
        if self.cluster.pod is not None:
            self.state.set_pod(self.cluster.pod)
        self.binder.settle()
        self.changes.observe("n1", self.cluster.lock or "")
        self.locks.sweep()


@pytest.fixture
def world(monkeypatch):
    monkeypatch.setattr(binding_module, "SETTLE_PAUSE_S", 0)
    return World()


def ended_with(world):
    try:
        world.binder.bind(ORDER)
    except (BindError, ClusterError) as error:
        return error
    return None


@pytest.mark.parametrize(
    ("error", "is_done"), FAULTS, ids=lambda value: str(getattr(value, "code", value))
)
@pytest.mark.parametrize("times", [1, 99])
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("kind", CALLS)
def test_a_call_that_fails_leaves_a_bound_pod_or_nothing(world, kind, first, times, error, is_done):
    world.cluster.fault(kind, first, times, error, is_done=is_done)
    ended = ended_with(world)
    bound = world.cluster.pod.node_name
    assert ended is not None or bound == "n1"
    world.settle()
    assert len(world.binder.unsettled) == 0
    claims = list(world.state.snapshot().claims())
    if bound:
        assert [claim.reservation for _, _, claim in claims] == list(world.held.hold.reservations)
        assert world.cluster.lock.endswith(",team-a,job")
    else:
        assert (claims, world.state.hold_of("uid-1"), world.cluster.lock) == ([], None, None)
        assert isinstance(world.filter(gpu_pod("uid-2")), Held)
    assert world.cluster.bindings <= 5


def test_a_node_that_was_deleted_since_the_decision_leaves_nothing(world):
    world.state.remove_node("n1")
    world.cluster.fault("get_node", 0, 99, NotFound("n1", 404), is_done=False)
    assert ended_with(world) is not None
    world.settle()
    assert world.state.hold_of("uid-1") is None
    assert not world.cluster.pod.node_name


@pytest.mark.parametrize("kind", CALLS)
def test_a_second_try_after_any_failure_binds(world, kind):
    world.cluster.fault(kind, 0, 1, OutcomeUnclear("lost"), is_done=False)
    if ended_with(world) is None:
        return
    world.cluster.mend()
    world.filter(gpu_pod())
    assert ended_with(world) is None
    assert world.cluster.pod.node_name == "n1"


def test_two_pods_of_one_name_never_get_each_others_devices(world):
    """The first is deleted and created anew between its filter and its bind."""
    old = world.held
    new = gpu_pod("uid-2")
    world.cluster.pod = new
    answer = world.filter(new)
    assert isinstance(answer, Held)
    assert answer.hold.reservations != old.hold.reservations
    assert "another Pod of that name" in str(ended_with(world))
    assert world.state.hold_of("uid-1") is None
    assert world.state.hold_of("uid-2") is answer.hold
    assert world.cluster.bindings == 0


def test_a_scheduler_that_goes_silent_after_a_filter_leaves_nothing(world):
    world.state._holds.clock = lambda: time.monotonic() + 3600
    world.state.expire_holds()
    assert list(world.state.snapshot().claims()) == []
    assert "no devices are held" in str(ended_with(world))
