"""Which waiting Pods are woken, in which order, and how often."""

from __future__ import annotations

import time

import pytest

from hami_web.cluster.errors import NotFound, ServerFailed
from hami_web.cluster.views import Container, ObjectMeta, PodSpec, PodView, Resources
from hami_web.core.annotations import POD_RETRY_AT
from hami_web.scheduling.waiting import WaitingPods, WakeLimits, Waker

QUICK = WakeLimits(gather_s=0.01, again_first_s=0.05, again_most_s=0.2, woken_at_once=2)


def pod(name, priority=0, created="2026-09-21T14:13:20Z", memory="4500"):
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory}
    meta = ObjectMeta(name, "team-a", f"uid-{name}", "1", created)
    containers = [Container("main", Resources(limits, limits))]
    return PodView(meta, PodSpec(priority=priority, containers=containers))


class Space:
    """Room for some Pods; notes who was given room, who was woken and who was given up."""

    def __init__(self, room):
        self.room = room
        self.held = []
        self.woken = []
        self.given_up = []
        self.error = None
        self.asked = 0
        self.sizes = {"4500"}

    def fits(self, waiting):
        self.asked += 1
        name = waiting.pod.metadata.name
        if waiting.pod.spec.containers[0].resources.limits["nvidia.com/gpumem"] not in self.sizes:
            return False
        if name not in self.held:
            if len(self.held) >= self.room:
                return False
            self.held.append(name)
        return True

    def annotate_pod(self, found, annotations):
        assert list(annotations) == [POD_RETRY_AT]
        if self.error is not None:
            raise self.error
        self.woken.append(found.metadata.name)

    def give_up(self, uid):
        self.given_up.append(uid)


@pytest.fixture
def waiting():
    return WaitingPods()


@pytest.fixture
def wake(waiting):
    wakers = []

    def start(space, limits=QUICK):
        waker = Waker(waiting, space.fits, space, give_up=space.give_up, limits=limits)
        wakers.append(waker)
        waker.start()
        return waker

    yield start
    for waker in wakers:
        waker.stop()


def eventually(condition):
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_nobody_is_woken_without_a_change(waiting, wake):
    space = Space(room=1)
    waiting.add(pod("a"), ("n1",))
    wake(space)
    time.sleep(0.05)
    assert space.woken == []


def test_priority_comes_first_then_age(waiting, wake):
    space = Space(room=9)
    waiting.add(pod("young", created="2026-09-21T14:13:22Z"), ("n1",))
    waiting.add(pod("old"), ("n1",))
    waiting.add(pod("same-age"), ("n1",))
    waiting.add(pod("high", priority=5, created="2026-09-21T15:00:00Z"), ("n1",))
    wake(space).notice()
    eventually(lambda: len(space.held) == 4)
    assert space.held == ["high", "old", "same-age", "young"]


def test_no_more_are_woken_than_fit(waiting, wake):
    space = Space(room=1)
    for name in ("a", "b", "c"):
        waiting.add(pod(name), ("n1",))
    waker = wake(space, WakeLimits(gather_s=0.01, again_first_s=60))
    waker.notice()
    eventually(lambda: space.woken == ["a"])
    waker.notice()
    time.sleep(0.05)
    assert space.woken == ["a"]


def test_one_pod_is_woken_at_growing_intervals(waiting, wake):
    space = Space(room=1)
    waiting.add(pod("a"), ("n1",))
    wake(space).notice()
    eventually(lambda: len(space.woken) >= 2)
    time.sleep(0.3)
    assert len(space.woken) <= 6


def test_a_dropped_pod_is_not_woken(waiting, wake):
    space = Space(room=2)
    waiting.add(pod("a"), ("n1",))
    waiting.add(pod("b"), ("n1",))
    waiting.drop("uid-a")
    waiting.keep(["uid-b"])
    wake(space, WakeLimits(gather_s=0.01)).notice()
    eventually(lambda: space.woken == ["b"])


@pytest.mark.parametrize(
    ("error", "left"), [(NotFound("gone", 404), 0), (ServerFailed("down", 500), 1)]
)
def test_a_pod_that_cannot_be_woken_holds_nothing(waiting, wake, error, left):
    space = Space(room=1)
    space.error = error
    waiting.add(pod("a"), ("n1",))
    wake(space, WakeLimits(gather_s=0.01)).notice()
    eventually(lambda: space.given_up == ["uid-a"])
    assert len(waiting) == left


def test_a_storm_of_equal_pods_costs_one_try_more_than_fit_and_no_write_more(waiting, wake):
    space = Space(room=3)
    for number in range(1000):
        waiting.add(pod(f"pod-{number}"), ("n1",))
    waker = wake(space, WakeLimits(gather_s=0.01, again_first_s=60))
    for _ in range(20):
        waker.notice()
        time.sleep(0.01)
    eventually(lambda: len(space.woken) == 3)
    passes = 21
    assert space.asked <= 3 + passes
    assert len(space.woken) == 3


def test_many_kinds_that_do_not_fit_never_keep_one_that_does_from_its_turn(waiting, wake):
    space = Space(room=1)
    for number in range(50):
        waiting.add(pod(f"big-{number}", priority=9, memory=str(40000 + number)), ("n1",))
    waiting.add(pod("small"), ("n1",))
    wake(space, WakeLimits(gather_s=0.001, tried_at_once=5)).notice()
    eventually(lambda: space.woken == ["small"])


def test_a_change_during_a_round_begins_another(waiting, wake):
    space = Space(room=1)
    for number in range(20):
        waiting.add(pod(f"big-{number}", priority=9, memory=str(40000 + number)), ("n1",))
    waker = wake(space, WakeLimits(gather_s=0.001, tried_at_once=5))
    waker.notice()
    eventually(lambda: space.asked > 5)
    space.sizes.add("40000")
    waker.notice()
    eventually(lambda: space.woken == ["big-0"])
