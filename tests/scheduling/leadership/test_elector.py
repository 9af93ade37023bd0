"""Terms of leadership over one Lease, with clocks and writes that go wrong."""

from __future__ import annotations

import copy
from contextlib import suppress

import pytest

from hami_web.cluster.errors import Conflict, NotFound, OutcomeUnclear, ServerFailed, Superseded
from hami_web.cluster.ports import Binding
from hami_web.cluster.views import LeaseFields, LeaseView, NodeView, ObjectMeta, PodView
from hami_web.scheduling.fence import FencedCluster
from hami_web.scheduling.leadership import Election, Elector


class Store:
    """One Lease with versions; ``plan`` holds errors for the next writes, raised after the write
    when they are in ``written``."""

    def __init__(self):
        self.lease = None
        self.version = 0
        self.plan = []
        self.written = []
        self.down = False
        self.writes = 0

    def get_lease(self, namespace, name):
        if self.down:
            raise ServerFailed("down", 500)
        if self.lease is None:
            raise NotFound("no lease", 404)
        return copy.deepcopy(self.lease)

    def create_lease(self, namespace, name, spec):
        if self.lease is not None:
            raise Conflict("exists", 409)
        return self._write(spec)

    def patch_lease(self, lease, spec):
        if self.down:
            raise ServerFailed("down", 500)
        if lease.metadata.resource_version != self.lease.metadata.resource_version:
            raise Conflict("moved", 409)
        return self._write(spec)

    def _write(self, spec):
        self.writes += 1
        error = self.plan.pop(0) if self.plan else None
        if error is None or error in self.written:
            self.version += 1
            self.lease = LeaseView(
                ObjectMeta("hami-extender", "hami-system", "uid", str(self.version)),
                LeaseFields(
                    spec.holder, spec.seconds, spec.acquired_at, spec.renewed_at, spec.transitions
                ),
            )
        if error is not None:
            raise error
        return copy.deepcopy(self.lease)


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def replica(store, clock):
    def make(pod="", **options):
        told = []
        elector = Elector(
            store,
            Election("hami-system", pod),
            clock=clock,
            on_change=told.append,
            **options,
        )
        elector.told = told
        return elector

    return make


def turn(elector):
    """One look at the Lease, as the thread takes it."""
    with suppress(Conflict, ServerFailed, OutcomeUnclear):
        elector._turn()
    elector._tell()


def test_the_first_takes_the_lease_and_the_second_stands_by(replica, store):
    first, second = replica("a"), replica("b")
    turn(first)
    turn(second)
    assert first.term().number == 0
    assert second.term() is None
    assert second.leader() == first.identity
    assert store.lease.spec.lease_duration_seconds == 10


def test_a_leader_that_renews_keeps_its_term_for_ever(replica, clock):
    first, second = replica(), replica()
    turn(first)
    term = first.term()
    for _ in range(50):
        clock.now += 2
        turn(first)
        turn(second)
        assert first.term() is term
        assert second.term() is None
    assert first.told == [term]


def test_a_leader_that_is_killed_is_followed_after_the_lease(replica, clock):
    first, second = replica("a"), replica("b")
    turn(first)
    turn(second)
    killed_at = clock.now
    while second.term() is None:
        clock.now += 1
        turn(second)
        assert not (first.term() and second.term())
    assert clock.now - killed_at <= 12
    assert second.term().number == 1
    assert second.former == "a"


def test_a_leader_that_stops_gives_the_lease_up_at_once(replica, store):
    first, second = replica("a"), replica("b")
    turn(first)
    turn(second)
    first.stop()
    assert first.term() is None
    assert store.lease.holder == ""
    turn(second)
    assert second.term().number == 1
    assert second.former == "a"
    assert first.told[-1] is None


def test_a_paused_leader_finds_its_term_over_before_anyone_else_may_lead(replica, clock):
    first, second = replica(), replica()
    turn(first)
    turn(second)
    while second.term() is None:
        assert not (first.term() and clock.now - 1000 > 8)
        clock.now += 0.25
        turn(second)
    assert first.term() is None
    turn(first)
    assert first.term() is None
    assert first.leader() == second.identity


def test_a_leader_that_cannot_reach_the_api_server_stops_before_the_lease_ends(
    replica, store, clock
):
    first = replica()
    turn(first)
    store.down = True
    for _ in range(7):
        clock.now += 1
        turn(first)
        assert first.term() is not None
    clock.now += 1.01
    turn(first)
    assert first.term() is None
    store.down = False
    turn(first)
    assert first.term() is not None
    assert first.told[0] is not first.told[-1]
    assert [term is None for term in first.told] == [False, True, False]


def test_a_term_that_was_interrupted_is_a_new_one_even_with_the_same_number(replica, clock):
    first = replica()
    turn(first)
    before = first.term()
    clock.now += 9
    turn(first)
    assert first.term() is not before


def test_a_write_whose_answer_was_lost_makes_a_leader_only_when_it_is_read(replica, store):
    first = replica()
    error = OutcomeUnclear("lost")
    store.plan, store.written = [error], [error]
    turn(first)
    assert first.term() is None
    turn(first)
    assert first.term() is not None


def test_a_renewal_that_failed_does_not_lengthen_the_term(replica, store, clock):
    first = replica()
    turn(first)
    store.plan = [OutcomeUnclear("lost")] * 9
    for _ in range(8):
        clock.now += 1
        turn(first)
    clock.now += 0.5
    assert first.term() is None


def test_of_two_that_see_a_free_lease_one_leads(replica, store, monkeypatch):
    first, second = replica(), replica()
    seen = LeaseView(ObjectMeta("hami-extender", "hami-system", "u", "0"), LeaseFields("", 1))
    store.lease = copy.deepcopy(seen)
    monkeypatch.setattr(store, "get_lease", lambda namespace, name: copy.deepcopy(seen))
    turn(first)
    turn(second)
    assert [first.term() is not None, second.term() is not None] == [True, False]


def test_a_restarted_container_takes_the_lease_of_its_own_pod_at_once(replica):
    turn(replica("a"))
    again, other = replica("a"), replica("b")
    turn(other)
    assert other.term() is None
    turn(again)
    assert again.term().number == 1


def test_processes_without_pods_never_take_each_other_for_themselves(replica):
    turn(replica())
    other = replica()
    turn(other)
    assert other.term() is None


def test_a_leader_whose_work_died_gives_the_lease_up_and_takes_none(replica, store):
    alive = [True]
    first = replica(is_fit=lambda: alive[0])
    turn(first)
    alive[0] = False
    turn(first)
    assert first.term() is None
    assert store.lease.holder == ""
    turn(first)
    assert store.lease.holder == ""


def test_a_lease_that_someone_else_took_ends_the_term(replica, store):
    first = replica()
    turn(first)
    store.lease.spec.holder_identity = "admin_x"
    store.lease.metadata.resource_version = "99"
    turn(first)
    assert first.term() is None


def test_the_thread_leads_and_stops(store):
    told = []
    elector = Elector(store, Election("hami-system", look_every_s=0.01), on_change=told.append)
    elector.start()
    assert elector.looked.wait(5)
    assert elector.term() is not None
    elector.stop()
    assert elector.term() is None
    assert told[-1] is None
    assert store.lease.holder == ""


class Writes:
    def __init__(self):
        self.done = []

    def bind(self, binding):
        self.done.append("bind")

    def annotate_node(self, node, annotations):
        self.done.append("node")

    def annotate_pod(self, pod, annotations):
        self.done.append("pod")


def test_nothing_is_written_after_the_term(replica, clock):
    first = replica()
    turn(first)
    writes = Writes()
    fenced = FencedCluster(writes, first)
    node, pod = NodeView(ObjectMeta("n1")), PodView(ObjectMeta("p", "ns", "u"))
    calls = (
        lambda: fenced.bind(Binding("ns", "p", "u", "n1")),
        lambda: fenced.annotate_node(node, {}),
        lambda: fenced.annotate_pod(pod, {}),
    )
    for call in calls:
        call()
    clock.now += 8.5
    for call in calls:
        with pytest.raises(Superseded, match="does not lead"):
            call()
    assert writes.done == ["bind", "node", "pod"]
