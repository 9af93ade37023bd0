"""The scheduler's queue, on a clock of the test's own."""

from __future__ import annotations

import pytest

from hami_web.simulator.documents import JsonObject
from hami_web.simulator.scheduling_queue import SchedulingQueue


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(clock: Clock) -> SchedulingQueue:
    return SchedulingQueue(first=1.0, longest=10.0, clock=clock)


def pod(name: str, *, priority: int = 0, created: str = "2026-11-30T12:00:00Z") -> JsonObject:
    meta = {"namespace": "default", "name": name, "creationTimestamp": created}
    return {"metadata": meta, "spec": {"priority": priority}}


def popped(queue: SchedulingQueue) -> str | None:
    """The next Pod's name, or None when none is ready now."""
    ready = queue.pop_ready()
    return ready["metadata"]["name"] if ready else None


def test_priority_comes_before_age(queue: SchedulingQueue) -> None:
    queue.add(pod("young", created="2026-11-30T12:00:05Z"))
    queue.add(pod("old"))
    queue.add(pod("high", priority=5, created="2026-11-30T12:00:09Z"))
    assert [popped(queue) for _ in range(4)] == ["high", "old", "young", None]


def test_what_did_not_fit_waits_for_a_change(queue: SchedulingQueue, clock: Clock) -> None:
    queue.put_back(pod("a"), queue.moves, is_error=False)
    clock.now += 3600
    assert popped(queue) is None
    queue.move_all()
    assert popped(queue) == "a"


def test_a_change_of_the_cluster_respects_the_back_off(
    queue: SchedulingQueue, clock: Clock
) -> None:
    queue.put_back(pod("a"), queue.moves, is_error=False)
    queue.move_all()
    assert popped(queue) is None
    clock.now += 1.0
    assert popped(queue) == "a"


def test_a_change_during_the_attempt_is_not_missed(queue: SchedulingQueue, clock: Clock) -> None:
    moves = queue.moves
    queue.move_all()
    queue.put_back(pod("a"), moves, is_error=False)
    clock.now += 1.0
    assert popped(queue) == "a"


def test_the_back_off_doubles_up_to_its_longest(queue: SchedulingQueue, clock: Clock) -> None:
    for pause in (1, 2, 4, 8, 10, 10):
        queue.put_back(pod("a"), queue.moves, is_error=True)
        clock.now += pause - 0.01
        assert popped(queue) is None
        clock.now += 0.01
        assert popped(queue) == "a"


def test_an_update_hastens_what_waits_but_not_what_backs_off(queue: SchedulingQueue) -> None:
    queue.put_back(pod("waits"), queue.moves, is_error=False)
    queue.put_back(pod("backs-off"), queue.moves, is_error=True)
    queue.add(pod("waits"))
    queue.add(pod("backs-off"))
    assert [popped(queue), popped(queue)] == ["waits", None]


def test_an_update_during_the_attempt_comes_before_the_back_off(queue: SchedulingQueue) -> None:
    queue.add(pod("a"))
    queue.put_back(pod("a"), queue.moves, is_error=False)
    assert popped(queue) == "a"


def test_a_removed_pod_starts_with_the_first_back_off_again(
    queue: SchedulingQueue, clock: Clock
) -> None:
    for _ in range(3):
        queue.put_back(pod("a"), queue.moves, is_error=True)
    queue.remove(("default", "a"))
    queue.put_back(pod("a"), queue.moves, is_error=True)
    clock.now += 1.0
    assert popped(queue) == "a"
