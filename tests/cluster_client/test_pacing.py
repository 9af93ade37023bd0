"""How many API calls go out, and who goes first."""

from __future__ import annotations

import threading

from hami_web.cluster.pacing import Pace, Priority


class Time:
    def __init__(self):
        self.now = 0.0

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def pace(time, per_second=10, burst=4):
    return Pace(per_second, burst, clock=time.clock, sleep=time.sleep)


def test_a_burst_goes_at_once_and_then_a_fixed_number_a_second():
    time = Time()
    limit = pace(time)
    for _ in range(4):
        limit.take(Priority.URGENT)
    assert time.now == 0
    for _ in range(20):
        limit.take(Priority.URGENT)
    assert 1.9 <= time.now <= 2.1
    assert 1.9 <= limit.waited_s <= 2.1


def test_housekeeping_leaves_half_of_the_burst_to_binds():
    time = Time()
    limit = pace(time)
    for _ in range(2):
        limit.take(Priority.HOUSEKEEPING)
    assert time.now == 0
    limit.take(Priority.HOUSEKEEPING)
    assert time.now > 0
    before = time.now
    for _ in range(2):
        limit.take(Priority.URGENT)
    assert time.now == before


def test_a_bind_goes_at_once_while_housekeeping_waits():
    limit = Pace(20, 4)
    for _ in range(2):
        limit.take(Priority.HOUSEKEEPING)
    waits = threading.Thread(target=limit.take, args=(Priority.HOUSEKEEPING,))
    waits.start()
    for _ in range(2):
        limit.take(Priority.URGENT)
    waits.join(5)
    assert not waits.is_alive()
