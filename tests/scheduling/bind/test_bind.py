"""How a bind ends, whatever the API server does meanwhile."""

from __future__ import annotations

import time

import msgspec
import pytest

from hami_web.cluster.errors import (
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
from hami_web.cluster.views import (
    Container,
    NodeStatus,
    NodeView,
    ObjectMeta,
    PodSpec,
    PodView,
    Resources,
)
from hami_web.core.capability import NodeCapability
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.registration import encode_registration
from hami_web.core.request import parse_pod_request
from hami_web.scheduling import binding as binding_module
from hami_web.scheduling.bind import Binder, BindOptions, BindOrder
from hami_web.scheduling.bind_queue import BindQueue
from hami_web.scheduling.errors import BindFailed, BindUnsettled, NoHold, PodChanged
from hami_web.scheduling.nodelock import LockChanges, NodeLocks
from hami_web.scheduling.state import ClusterState
from tests.builders import a100_40gb

LOCK = "hami.io/mutex.lock"
ORDER = BindOrder("team-a", "job", "uid-1", "n1")


def ready_status(gpus):
    ready = {"type": "Ready", "status": "True"}
    document = {"allocatable": {"nvidia.com/gpu": gpus}, "conditions": [ready]}
    return msgspec.convert(document, NodeStatus)


def gpu_pod(uid="uid-1"):
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4500"}
    spec = PodSpec(containers=[Container("main", Resources(limits, limits))])
    return PodView(ObjectMeta("job", "team-a", uid, "1", "2026-09-21T14:13:19Z"), spec)


class Cluster:
    """One node and one Pod. Each Binding meets the next planned outcome: an error, which is
    raised after the write if it is in ``written``."""

    def __init__(self):
        register = encode_registration(NodeCapability((a100_40gb(),)))
        self.pod = gpu_pod()
        self.node = NodeView(
            ObjectMeta("n1", annotations={"hami.io/node-nvidia-register": register}),
            status=ready_status("7"),
        )
        self.outcomes = []
        self.written = set()
        self.bindings = 0
        self.reading_fails = 0

    def get_pod(self, namespace, name):
        if self.reading_fails and self.bindings:
            self.reading_fails -= 1
            raise ServerFailed("down", 500)
        if self.pod is None:
            raise NotFound("job", 404)
        return self.pod

    def get_node(self, name):
        return self.node

    def annotate_node(self, node, annotations):
        self.node.metadata.annotations |= annotations
        return self.node

    def bind(self, binding):
        self.bindings += 1
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if outcome is None or outcome in self.written:
            self.set_bound(binding.node, binding.annotations)
        if outcome is not None:
            raise outcome

    def set_bound(self, node, annotations):
        self.pod.spec.node_name = node
        self.pod.metadata.annotations = dict(annotations)

    @property
    def lock(self):
        return self.node.metadata.annotations.get(LOCK)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(binding_module, "SETTLE_PAUSE_S", 0)


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def state(cluster):
    state = ClusterState(SchedulingPolicy())
    state.set_node(cluster.node)
    pod = gpu_pod()
    state.filter(pod, parse_pod_request(pod.container_specs(), {}), ["n1"])
    assert state.hold_of("uid-1") is not None
    return state


class Clock:
    """The monotonic clock, and time that is added to it."""

    def __init__(self):
        self.added = 0.0

    def __call__(self):
        return time.monotonic() + self.added


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def binder(cluster, state, clock):
    locks = NodeLocks(cluster, LockChanges())
    queue = BindQueue(most_waiting=4)
    return Binder(cluster, state, locks, queue, options=BindOptions(0.5), clock=clock)


@pytest.fixture
def bind(binder):
    return lambda order=ORDER: binder.bind(order)


def assert_nothing_is_left(cluster, state):
    assert cluster.lock is None
    assert state.hold_of("uid-1") is None
    assert list(state.snapshot().claims()) == []


def test_a_bound_pod_keeps_lock_and_claim_until_the_watch_shows_it(bind, cluster, state):
    bind()
    assert cluster.lock.endswith(",team-a,job")
    assert len(list(state.snapshot().claims())) == 1
    state.set_pod(cluster.pod)
    assert len(list(state.snapshot().claims())) == 1


@pytest.mark.parametrize(
    "error", [OutcomeUnclear("lost"), ServerFailed("etcd", 500), MalformedAnswer("not JSON", 201)]
)
def test_an_unclear_write_that_happened_is_success(bind, cluster, error):
    cluster.outcomes, cluster.written = [error], {error}
    bind()
    assert cluster.bindings == 1


def test_an_unclear_write_that_did_not_happen_is_written_again(bind, cluster):
    cluster.outcomes = [OutcomeUnclear("lost"), ServerFailed("etcd", 500)]
    bind()
    assert cluster.bindings == 3
    assert cluster.pod.node_name == "n1"


def test_what_cannot_be_settled_keeps_lock_and_hold(bind, cluster, state):
    cluster.outcomes = [OutcomeUnclear("lost")] * 4
    cluster.reading_fails = 4
    with pytest.raises(BindUnsettled):
        bind()
    assert cluster.lock is not None
    assert state.hold_of("uid-1") is not None


def test_a_conflict_with_our_own_earlier_write_is_success(bind, cluster):
    conflict = Conflict("already assigned", 409)
    cluster.outcomes, cluster.written = [conflict], {conflict}
    bind()
    assert cluster.lock is not None


def test_a_pod_bound_elsewhere_meanwhile_is_refused(bind, cluster, state):
    cluster.set_bound("n2", {})
    with pytest.raises(PodChanged, match="bound to node n2"):
        bind()
    assert_nothing_is_left(cluster, state)


def test_a_pod_bound_here_by_someone_else_is_refused(bind, cluster, state):
    cluster.set_bound("n1", {})
    with pytest.raises(PodChanged, match="unreserved"):
        bind()
    assert_nothing_is_left(cluster, state)


@pytest.mark.parametrize(
    "error",
    [Forbidden("no", 403), NotFound("gone", 404), Unreachable("down"), Superseded("no term")],
)
def test_a_refused_binding_leaves_nothing(bind, cluster, state, error):
    cluster.outcomes = [error]
    with pytest.raises(type(error)):
        bind()
    assert_nothing_is_left(cluster, state)


def test_a_conflict_on_an_unbound_pod_leaves_nothing(bind, cluster, state):
    cluster.outcomes = [Conflict("being deleted", 409)]
    with pytest.raises(BindFailed, match="being deleted"):
        bind()
    assert_nothing_is_left(cluster, state)


def test_too_many_requests_are_waited_for_within_the_time(bind, cluster):
    cluster.outcomes = [TooManyRequests("slow down", retry_after_s=0.01)]
    bind()
    assert cluster.bindings == 2


def test_too_many_requests_beyond_the_time_leave_nothing(bind, cluster, state):
    cluster.outcomes = [TooManyRequests("slow down", retry_after_s=60)]
    with pytest.raises(TooManyRequests):
        bind()
    assert_nothing_is_left(cluster, state)


def test_a_pod_that_is_gone_leaves_nothing(bind, cluster, state):
    cluster.pod = None
    with pytest.raises(PodChanged, match="gone"):
        bind()
    assert_nothing_is_left(cluster, state)


def test_another_pod_of_that_name_is_not_bound(bind, cluster, state):
    cluster.pod = gpu_pod("uid-2")
    with pytest.raises(PodChanged, match="another Pod of that name"):
        bind()
    assert cluster.bindings == 0
    assert_nothing_is_left(cluster, state)


def test_another_node_than_the_held_one_is_refused(bind, cluster):
    with pytest.raises(NoHold, match="held on node n1, not on n9"):
        bind(BindOrder("team-a", "job", "uid-1", "n9"))
    assert cluster.bindings == 0


def test_a_busy_node_gives_the_hold_back(bind, cluster, state):
    cluster.node.metadata.annotations[LOCK] = "not a lock"
    with pytest.raises(Exception, match="remove the annotation"):
        bind()
    assert state.hold_of("uid-1") is None
    assert cluster.lock == "not a lock"


@pytest.fixture
def unsettled(bind, cluster):
    """A bind whose every write and read went wrong; the Pod may be bound or not."""
    cluster.outcomes = [OutcomeUnclear("lost")] * 4
    cluster.reading_fails = 4
    with pytest.raises(BindUnsettled):
        bind()
    cluster.reading_fails = 0


def test_an_open_bind_that_happened_is_found_out(unsettled, binder, cluster, state):
    cluster.set_bound("n1", {"hami.io/vgpu-node": "n1"})
    binder.settle()
    assert len(binder.unsettled) == 0
    assert cluster.lock is not None
    state._holds.clock = lambda: time.monotonic() + 3600
    state.expire_holds()
    assert len(list(state.snapshot().claims())) == 1


def test_an_open_bind_stays_open_as_long_as_its_write_may_come(unsettled, binder, cluster, clock):
    binder.settle()
    clock.added += 50
    binder.settle()
    assert len(binder.unsettled) == 1
    assert cluster.lock is not None


def test_an_open_bind_that_did_not_happen_leaves_nothing(unsettled, binder, cluster, state, clock):
    clock.added += 61
    binder.settle()
    assert len(binder.unsettled) == 0
    assert_nothing_is_left(cluster, state)


@pytest.mark.parametrize("replaced", [None, gpu_pod("uid-2")])
def test_an_open_bind_of_a_pod_that_is_gone_leaves_nothing(
    unsettled, binder, cluster, state, replaced
):
    cluster.pod = replaced
    binder.settle()
    assert len(binder.unsettled) == 0
    assert_nothing_is_left(cluster, state)


def test_a_second_try_of_an_open_bind_settles_it(unsettled, bind, binder, cluster):
    bind()
    assert len(binder.unsettled) == 0
    assert cluster.pod.node_name == "n1"


def test_a_second_try_that_fails_plainly_keeps_what_the_first_may_need(
    unsettled, bind, binder, cluster, state
):
    cluster.outcomes = [Forbidden("no", 403)]
    with pytest.raises(Forbidden):
        bind()
    assert len(binder.unsettled) == 1
    assert cluster.lock is not None
    assert state.hold_of("uid-1") is not None


def test_a_node_whose_agent_died_since_the_decision_takes_no_binding(bind, cluster, state):
    state.set_agent("n1", alive=False)
    with pytest.raises(NoHold, match="node n1 takes no new work: NodeCapabilityStale"):
        bind()
    assert cluster.bindings == 0
    assert_nothing_is_left(cluster, state)


def test_a_gpu_that_vanished_since_the_decision_takes_no_binding(bind, cluster, state):
    other = encode_registration(NodeCapability((a100_40gb("GPU-other"),)))
    cluster.node.metadata.annotations["hami.io/node-nvidia-register"] = other
    state.set_node(cluster.node)
    with pytest.raises(NoHold, match="takes no new work"):
        bind()
    assert cluster.bindings == 0
    assert state.hold_of("uid-1") is None


def test_a_decision_of_an_earlier_term_is_not_bound(bind, cluster, state, monkeypatch):
    lock = NodeLocks.acquire

    def term_ends(self, node, pod, *, deadline):
        lock(self, node, pod, deadline=deadline)
        state.release_holds()

    monkeypatch.setattr(NodeLocks, "acquire", term_ends)
    with pytest.raises(NoHold, match="given up while it was being bound"):
        bind()
    assert cluster.bindings == 0
    assert_nothing_is_left(cluster, state)


@pytest.mark.parametrize("replaced", [None, gpu_pod("uid-2")])
def test_a_bound_pod_that_no_watch_shows_and_that_is_gone_is_found_out(
    bind, binder, cluster, state, replaced
):
    bind()
    cluster.pod = replaced
    binder.settle()
    assert len(list(state.snapshot().claims())) == 1
    state._holds.clock = lambda: time.monotonic() + 11
    binder.settle()
    assert list(state.snapshot().claims()) == []
    assert state.hold_of("uid-1") is None


def test_a_bound_pod_that_no_watch_shows_stays_counted_while_it_lives(bind, binder, cluster, state):
    bind()
    state._holds.clock = lambda: time.monotonic() + 11
    binder.settle()
    assert len(list(state.snapshot().claims())) == 1


def test_what_is_read_of_a_pod_never_outlives_what_the_watch_showed(
    bind, binder, cluster, state, monkeypatch
):
    bind()
    state._holds.clock = lambda: time.monotonic() + 11
    read = cluster.get_pod

    def deleted_right_after(namespace, name):
        found = read(namespace, name)
        state.remove_pod(found.uid)
        return found

    monkeypatch.setattr(cluster, "get_pod", deleted_right_after)
    binder.settle()
    assert list(state.snapshot().claims()) == []


def test_an_error_that_nobody_expects_gives_hold_and_turn_back(bind, cluster, state, monkeypatch):
    def breaks(self, node, pod, *, deadline):
        raise RuntimeError("a mistake")

    monkeypatch.setattr(NodeLocks, "acquire", breaks)
    with pytest.raises(RuntimeError):
        bind()
    assert_nothing_is_left(cluster, state)
