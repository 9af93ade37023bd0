"""How long agents take to realize, as watched."""

from __future__ import annotations

import pytest

from hami_web.cluster.views import ObjectMeta, PodSpec, PodView
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.reservation import RuntimeIdentity, encode_allocations
from hami_web.scheduling.custody import Custody
from hami_web.scheduling.realizations import Realizations
from hami_web.scheduling.sinks import PodSink
from hami_web.scheduling.state import ClusterState
from hami_web.scheduling.waiting import WaitingPods
from tests.builders import GPU_A, a100_40gb, reservation
from tests.scheduling.state.cluster import node

IDENTITY = RuntimeIdentity("MIG-1", 1, 0)


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def times(clock):
    return Realizations(clock)


@pytest.fixture
def sink(times):
    state = ClusterState(SchedulingPolicy())
    state.set_node(node("n1", [a100_40gb(GPU_A)]))
    return PodSink(state, WaitingPods(), Custody(state), "hami-scheduler", realizations=times)


def bound(name, *reservations, deleted=None):
    annotations = {"hami.io/vgpu-mig-allocations": encode_allocations(reservations)}
    meta = ObjectMeta(name, "team", name, annotations=annotations, deletion_timestamp=deleted)
    return PodView(meta, PodSpec(node_name="n1"))


WANTED = reservation(name="1g.5gb", start=0, size=1)
OTHER = reservation(0, 1, name="1g.5gb", start=1, size=1)
MADE = reservation(name="1g.5gb", start=0, size=1, identity=IDENTITY)


def counted(times):
    found = times.durations.snapshot()
    return sum(found.counts), found.total_s


def test_the_time_from_binding_to_the_last_instance_is_counted_once(sink, times, clock):
    sink.put(bound("a", WANTED, OTHER))
    clock.now += 2
    sink.put(bound("a", MADE, OTHER))
    assert (times.oldest_s(), counted(times)) == (2, (0, 0))
    clock.now += 1
    made = [MADE, reservation(0, 1, name="1g.5gb", start=1, size=1, identity=IDENTITY)]
    for _ in range(2):
        sink.put(bound("a", *made))
    assert (times.oldest_s(), counted(times)) == (0, (1, 3.0))


def test_a_pod_that_ends_before_it_had_an_instance_is_no_duration(sink, times, clock):
    sink.put(bound("a", WANTED))
    sink.put(bound("b", OTHER))
    clock.now += 5
    sink.put(bound("a", WANTED, deleted="2026-01-01T00:00:00Z"))
    sink.remove(ObjectMeta("b", "team", "b"))
    assert (times.oldest_s(), counted(times)) == (0, (0, 0))


def test_what_a_list_brings_has_an_age_but_no_duration(sink, times, clock):
    sink.replace([bound("a", WANTED)], listed_at=100.0)
    clock.now += 4
    sink.put(bound("a", WANTED))
    assert times.oldest_s() == 4
    sink.put(bound("a", MADE))
    assert (times.oldest_s(), counted(times)) == (0, (0, 0))


def test_a_list_forgets_what_is_gone_and_keeps_what_was_watched(sink, times, clock):
    sink.put(bound("a", WANTED))
    sink.put(bound("gone", OTHER))
    clock.now += 3
    sink.replace([bound("a", WANTED)], listed_at=clock.now)
    assert times.oldest_s() == 3
    clock.now += 1
    sink.put(bound("a", MADE))
    assert (times.oldest_s(), counted(times)) == (0, (1, 4.0))
