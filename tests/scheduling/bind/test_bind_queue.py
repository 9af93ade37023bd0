"""Turns of one node, first come, first served."""

from __future__ import annotations

import threading
import time

import pytest

from hami_web.scheduling.bind_queue import BindQueue
from hami_web.scheduling.errors import LockBusy


def soon():
    return time.monotonic() + 5


def eventually(condition):
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_turns_come_in_order_of_arrival():
    queue = BindQueue(most_waiting=10)
    order = []

    def take(number):
        with queue.turn("n1", deadline=soon()):
            order.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(4)]
    with queue.turn("n1", deadline=soon()):
        for position, thread in enumerate(threads):
            thread.start()
            eventually(lambda depth=position + 2: queue.depth("n1") == depth)
        assert order == []
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3]
    assert queue.depths() == {}


def test_nodes_do_not_wait_for_each_other():
    queue = BindQueue(most_waiting=10)
    with queue.turn("n1", deadline=soon()), queue.turn("n2", deadline=soon()):
        assert queue.depths() == {"n1": 1, "n2": 1}


def test_a_wait_ends_at_its_deadline_and_leaves_the_queue():
    queue = BindQueue(most_waiting=10)
    with queue.turn("n1", deadline=soon()):
        with (
            pytest.raises(LockBusy, match="1 other Pods"),
            queue.turn("n1", deadline=time.monotonic() + 0.01),
        ):
            pytest.fail("it has no turn")
        assert queue.depth("n1") == 1


def test_a_turn_is_given_back_when_the_bind_fails():
    queue = BindQueue(most_waiting=10)
    with pytest.raises(RuntimeError), queue.turn("n1", deadline=soon()):
        raise RuntimeError
    with queue.turn("n1", deadline=time.monotonic()):
        assert queue.depth("n1") == 1


def test_no_more_wait_than_allowed():
    queue = BindQueue(most_waiting=1)
    with (
        queue.turn("n1", deadline=soon()),
        pytest.raises(LockBusy, match="most allowed"),
        queue.turn("n2", deadline=soon()),
    ):
        pytest.fail("it has no turn")
