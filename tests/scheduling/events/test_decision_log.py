"""What was decided, for whoever keeps it: counted, bounded, read from a cursor."""

from __future__ import annotations

import msgspec
import pytest

from hami_web.core.placement import Placement
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.quota import NamespaceQuota
from hami_web.core.reservation import Reservation
from hami_web.scheduling.decision_log import DecisionLog, LogLimits, Outcome
from hami_web.scheduling.events import Regarding
from hami_web.scheduling.explained import NODES_MAX, Explanation
from hami_web.scheduling.holds import Hold
from hami_web.scheduling.state import ClusterState, Refused
from tests.builders import reservation
from tests.scheduling.state.cluster import node, pod, request_of

GPU = "GPU-node-1-0"


class Time:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Ticking(Time):
    """Every look at it takes a second."""

    def __call__(self):
        self.now += 1.0
        return self.now


def about(name="a", namespace="team-a"):
    return Regarding(namespace, name, f"uid-{name}")


@pytest.fixture
def state():
    state = ClusterState(SchedulingPolicy())
    state.set_node(node("node-1"))
    return state


def refused(state, memory=20000, names=("node-1",), count=1):
    view = pod("asking", memory, count=count)
    answer = state.filter(view, request_of(view), names)
    assert isinstance(answer, Refused)
    return answer


def fill(state, *starts):
    for start in starts:
        one = reservation(gpu=GPU, name="1g.5gb", start=start, size=1)
        state.set_pod(pod(f"p{start}", on="node-1", reservations=[one]))


def explanation(decision):
    return msgspec.json.decode(decision.explanation, type=Explanation)


def outcomes(page):
    return [(item.outcome, item.pod.name, item.count) for item in page.decisions]


def test_a_repeated_decision_is_one_entry_that_is_counted():
    clock = Time()
    log = DecisionLog(clock=clock)
    log.add(Outcome.HELD, about(), "find fit node(n1)", node="n1")
    clock.now = 1010.0
    log.add(Outcome.HELD, about(), "find fit node(n1)", node="n1")
    [decision] = log.since().decisions
    assert (decision.first, decision.last, decision.count) == (1000.0, 1010.0, 2)
    assert (decision.outcome, decision.node, decision.code) == ("held", "n1", None)
    assert bytes(decision.explanation) == b"null"


def test_other_reasons_and_other_pods_of_the_name_are_other_entries():
    log = DecisionLog()
    log.add(Outcome.REFUSED, about(), "no memory")
    log.add(Outcome.REFUSED, about(), "no placement")
    log.add(Outcome.REFUSED, Regarding("team-a", "a", "another"), "no memory")
    log.add(Outcome.BIND_FAILED, about(), "lock busy", code="mig.bind.lock_busy")
    assert len({item.id for item in log.since().decisions}) == 4


def test_a_reader_gets_what_is_new_or_was_counted_since_its_cursor():
    log = DecisionLog()
    for name in "abc":
        log.add(Outcome.REFUSED, about(name), "full")
    page = log.since(limit=2)
    assert (outcomes(page), page.more) == ([("refused", "a", 1), ("refused", "b", 1)], True)
    page = log.since(page.cursor)
    assert (outcomes(page), page.more) == ([("refused", "c", 1)], False)
    log.add(Outcome.REFUSED, about("a"), "full")
    page = log.since(page.cursor)
    assert (outcomes(page), page.reset) == ([("refused", "a", 2)], False)
    again = log.since(page.cursor)
    assert (again.decisions, again.cursor, again.reset) == ((), page.cursor, False)


@pytest.mark.parametrize("cursor", ["x", "-", "0badcafe-3", "-5", "²-²", "a-b-c"])
def test_the_cursor_of_another_process_begins_anew_and_says_so(cursor):
    log = DecisionLog()
    log.add(Outcome.BOUND, about(), "bound")
    page = log.since(cursor)
    assert page.reset
    assert len(page.decisions) == 1
    assert not log.since().reset


def test_the_ring_forgets_the_oldest_and_counts_what_nobody_read():
    log = DecisionLog(LogLimits(entries=3))
    log.add(Outcome.BOUND, about("read"), "bound")
    cursor = log.since().cursor
    for name in "abcd":
        log.add(Outcome.BOUND, about(name), "bound")
    assert (len(log), log.dropped) == (3, 1)
    page = log.since(cursor)
    assert page.reset
    assert [item.pod.name for item in page.decisions] == ["b", "c", "d"]
    assert not log.since(page.cursor).reset


def test_explanations_are_bounded_in_bytes(state):
    fill(state, 0, 1, 5)
    log = DecisionLog(LogLimits(explained_bytes=3000))
    for number in range(40):
        log.add(Outcome.REFUSED, about(f"p{number}"), "scattered", refused=refused(state))
        log.since()
    kept = log.since().decisions
    assert 1 <= len(kept) < 40
    assert sum(len(bytes(item.explanation)) for item in kept) <= 3000


def test_a_refusal_tells_nodes_gpus_and_what_comes_closest(state):
    fill(state, 0, 1, 5)
    log = DecisionLog()
    names = ("node-1", "absent")
    log.add(Outcome.REFUSED, about(), "scattered", refused=refused(state, names=names))
    [decision] = log.since().decisions
    found = explanation(decision)
    assert found.nodes_asked == 2
    assert found.reasons == {"CardMigTopologyInfeasible": 1, "node unregistered": 1}
    [asked] = found.asked
    assert (asked.container, asked.count, asked.memory_mib) == ("c0", 1, 20000)
    first, last = found.nodes
    assert (first.node, first.code, first.wanted) == ("node-1", None, 1)
    [gpu] = first.gpus
    assert (gpu.gpu_uuid, gpu.code) == (GPU, "CardMigTopologyInfeasible")
    assert (gpu.free_memory_slices, gpu.memory_slices) == (5, 8)
    assert (last.node, last.code, last.gpus) == ("absent", "node unregistered", ())
    nearest = found.nearest
    assert (nearest.node, nearest.profile, nearest.start, nearest.size) == (
        "node-1",
        "3g.20gb",
        4,
        4,
    )
    [blocking] = nearest.reservations
    assert (blocking.name, blocking.profile, blocking.start) == ("pod-p5", "1g.5gb", 5)
    assert nearest.fragmented
    assert nearest.smaller.profile == "2g.10gb"


def test_a_refusal_is_told_as_it_was_when_it_was_made(state):
    fill(state, 0, 1, 5)
    log = DecisionLog()
    log.add(Outcome.REFUSED, about(), "scattered", refused=refused(state))
    state.remove_pod("p5")
    [decision] = log.since().decisions
    assert [item.name for item in explanation(decision).nearest.reservations] == ["pod-p5"]


def test_a_quota_is_named(state):
    state.set_quota(NamespaceQuota("team-a", "small", memory_mib=1000))
    log = DecisionLog()
    log.add(Outcome.REFUSED, about(), "quota", refused=refused(state, 4000))
    found = explanation(log.since().decisions[0])
    assert (found.quota.name, found.quota.memory_mib, found.nearest) == ("small", 1000, None)
    assert found.nodes[0].gpus[0].code == "ResourceQuotaNotFit"


def test_only_the_closest_nodes_are_told_in_full_and_all_are_counted(state):
    names = [f"absent-{number:03}" for number in range(500)]
    log = DecisionLog()
    answer = refused(state, 9000, names=("node-1", *names), count=4)
    log.add(Outcome.REFUSED, about(), "too many", refused=answer)
    found = explanation(log.since().decisions[0])
    assert (found.nodes_asked, len(found.nodes)) == (501, NODES_MAX)
    assert (found.nodes[0].node, found.nodes[0].found, found.nodes[0].wanted) == ("node-1", 3, 4)
    assert found.reasons["node unregistered"] == 500


def test_an_explanation_is_made_anew_once_it_is_old(state):
    clock = Time()
    log = DecisionLog(LogLimits(refresh_s=60), clock=clock, timer=Time())
    fill(state, 0, 1, 5)
    log.add(Outcome.REFUSED, about(), "scattered", refused=refused(state))
    log.since()
    fill(state, 6)
    for clock.now, blockers in ((1030.0, 1), (1061.0, 2)):
        log.add(Outcome.REFUSED, about(), "scattered", refused=refused(state))
        found = explanation(log.since().decisions[0])
        assert len(found.nearest.reservations) == blockers


def test_of_too_many_unread_refusals_the_oldest_keep_their_words_only(state):
    fill(state, 0, 1, 5)
    log = DecisionLog(LogLimits(unread=2))
    for name in "abc":
        log.add(Outcome.REFUSED, about(name), "scattered", refused=refused(state))
    first, *others = log.since().decisions
    assert (bytes(first.explanation), first.message) == (b"null", "scattered")
    assert all(explanation(item).nearest for item in others)
    log.add(Outcome.REFUSED, about("a"), "scattered", refused=refused(state))
    assert explanation(log.since().decisions[-1]).nearest


def test_a_reader_gets_at_least_one_entry_however_little_time_there_is(state):
    fill(state, 0, 1, 5)
    log = DecisionLog(LogLimits(explain_s=-1))
    for name in "abc":
        log.add(Outcome.REFUSED, about(name), "scattered", refused=refused(state))
    page = log.since()
    seen = [item.pod.name for item in page.decisions]
    while page.more:
        page = log.since(page.cursor)
        seen += [item.pod.name for item in page.decisions]
    assert seen == ["a", "b", "c"]


def test_equal_requests_of_one_moment_are_searched_once_and_the_next_search_has_to_wait(state):
    fill(state, 0, 1, 5)
    log = DecisionLog(LogLimits(explain_s=1e9), timer=Ticking())
    for name in "ab":
        log.add(Outcome.REFUSED, about(name), "scattered", refused=refused(state))
    fill(state, 6)
    log.add(Outcome.REFUSED, about("c"), "scattered", refused=refused(state))
    a, b, c = map(explanation, log.since().decisions)
    assert a.nearest is not None
    assert a == b
    assert (c.nearest, c.nearest_known) == (None, False)
    for _ in range(20):
        log.since()
    log.add(Outcome.REFUSED, about("c"), "scattered", refused=refused(state))
    [*_, later] = log.since().decisions
    assert len(explanation(later).nearest.reservations) == 2


def test_a_hold_tells_its_devices_as_the_last_time() -> None:
    log = DecisionLog()
    for start in (0, 1):
        item = Reservation(0, 0, GPU, "1g.5gb", Placement(start, 1))
        log.add_hold(about(), "held", Hold("u", "team-a", "a", "n1", (item,), 1, (), 0.0))
    (entry,) = log.since().decisions
    found = [(held.gpu_uuid, held.profile, held.start, held.size) for held in entry.held]
    assert (entry.node, entry.count, found) == ("n1", 2, [(GPU, "1g.5gb", 1, 1)])
