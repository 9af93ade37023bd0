"""Any order of events, and many threads: occupancy is always the sum of what was granted."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hami_web.cluster.views import NodeView, PodView
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.reservation import Reservation
from hami_web.scheduling.records import ClusterSnapshot
from hami_web.scheduling.state import ClusterState, Held, Hold
from tests.scheduling.state.cluster import a100s, bound, node, pod, request_of

NODES = ("node-1", "node-2")
SIZES = (4000, 9000, 20000, 40000)


def cluster(clock: object = None) -> ClusterState:
    policy = SchedulingPolicy(hold_seconds=60)
    state = ClusterState(policy, clock=clock) if clock else ClusterState(policy)  # type: ignore[arg-type]
    for name in NODES:
        state.set_node(node(name, a100s(name, 2)))
    return state


def taken(snapshot: ClusterSnapshot) -> dict[tuple[str, str], int]:
    """Memory slices by node and GPU; fails when two claims overlap."""
    masks: dict[tuple[str, str], int] = {}
    for record in snapshot.nodes.values():
        for gpu in record.gpus:
            mask = 0
            for claim in gpu.claims:
                assert not mask & claim.placement.mask
                mask |= claim.placement.mask
            assert mask == gpu.state & gpu.table.slice_mask
            masks[record.name, gpu.capability.uuid] = mask
    return masks


def granted(holds: Iterable[tuple[str, tuple[Reservation, ...]]]) -> dict[tuple[str, str], int]:
    masks: dict[tuple[str, str], int] = {}
    for name, reservations in holds:
        for item in reservations:
            key = (name, item.gpu_uuid)
            assert not masks.get(key, 0) & item.placement.mask
            masks[key] = masks.get(key, 0) | item.placement.mask
    return masks


class Machine(RuleBasedStateMachine):
    """Filter, bind, watch events, deletion, expiry, lists and lost nodes in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.state = cluster(lambda: self.now)
        self.serial = 0
        self.pods: dict[str, PodView] = {}
        self.held: dict[str, Hold] = {}
        self.binding: set[str] = set()
        self.renewed: dict[str, float] = {}
        self.bound: dict[str, Hold] = {}
        self.owned: set[str] = set()

    def view(self, name: str) -> NodeView:
        labels = {"nvidia.com/mig.config": "all-disabled"} if name in self.owned else {}
        return node(name, a100s(name, 2), labels=labels)

    @rule(size=st.sampled_from(SIZES), count=st.integers(1, 3))
    def filter_new(self, size: int, count: int) -> None:
        self.serial += 1
        view = pod(f"p{self.serial}", size, count=count)
        self.pods[view.uid] = view
        self.filter_again(view.uid)

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def filter_old(self, data: st.DataObject) -> None:
        self.filter_again(data.draw(st.sampled_from(sorted(self.pods))))

    def filter_again(self, uid: str) -> None:
        view = self.pods[uid]
        before = None if uid in self.binding else self.held.get(uid)
        if before is not None and before.node in self.owned:
            self.forget(uid)  # decided anew, elsewhere
        answer = self.state.filter(view, request_of(view), NODES)
        if uid in self.bound:
            assert isinstance(answer, Held)
            assert answer.hold.reservations == self.bound[uid].reservations
        elif isinstance(answer, Held):
            assert uid not in self.held or answer.hold == self.held[uid]
            assert uid in self.binding or answer.hold.node not in self.owned
            self.held[uid] = answer.hold
            self.renewed[uid] = self.now
        else:
            assert uid not in self.held

    @precondition(lambda self: self.held)
    @rule(data=st.data(), ends=st.sampled_from(["binds", "fails", "hangs"]))
    def bind(self, data: st.DataObject, ends: str) -> None:
        uid = data.draw(st.sampled_from(sorted(self.held)))
        assert self.state.mark_binding(uid) == self.held[uid]
        self.binding.add(uid)
        if ends == "fails":
            self.state.release(uid)
            self.forget(uid)
        elif ends == "binds":
            self.state.confirm(uid)

    @precondition(lambda self: self.binding)
    @rule(data=st.data(), deleting=st.booleans())
    def watch_shows_bound(self, data: st.DataObject, deleting: bool) -> None:
        uid = data.draw(st.sampled_from(sorted(self.binding)))
        view = bound(self.pods[uid], self.held[uid])
        if deleting:
            view.metadata.deletion_timestamp = "2026-11-30T17:00:00Z"
        self.state.set_pod(view)
        self.bound[uid] = self.held[uid]
        self.pods[uid] = view
        self.forget(uid)

    @precondition(lambda self: self.pods)
    @rule(data=st.data(), terminal=st.booleans())
    def pod_ends(self, data: st.DataObject, terminal: bool) -> None:
        uid = data.draw(st.sampled_from(sorted(self.pods)))
        view = self.pods.pop(uid)
        if terminal:
            view.status.phase = "Succeeded"
            self.state.set_pod(view)
        else:
            self.state.remove_pod(uid)
        self.bound.pop(uid, None)
        self.forget(uid)

    @rule(seconds=st.sampled_from([1, 30, 61]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds
        gone = {hold.pod_uid for hold in self.state.expire_holds()}
        assert gone == {
            uid
            for uid in self.held
            if uid not in self.binding and self.now - self.renewed[uid] >= 60
        }
        for uid in gone:
            self.forget(uid)

    @rule()
    def lists_arrive_again(self) -> None:
        self.state.replace_pods(list(self.pods.values()), listed_at=self.now)
        self.state.replace_nodes([self.view(name) for name in NODES])

    @rule(name=st.sampled_from(NODES))
    def node_goes_and_comes(self, name: str) -> None:
        self.state.remove_node(name)
        self.state.set_node(self.view(name))

    @rule(name=st.sampled_from(NODES))
    def another_owner_comes_or_goes(self, name: str) -> None:
        """What is taken on the node stays taken; see also ``filter_again``."""
        self.owned ^= {name}
        self.state.set_node(self.view(name))

    @invariant()
    def occupancy_is_what_was_granted(self) -> None:
        live = [*self.held.values(), *self.bound.values()]
        expected = granted((hold.node, hold.reservations) for hold in live)
        found = taken(self.state.snapshot())
        assert {key: mask for key, mask in found.items() if mask} == expected

    def forget(self, uid: str) -> None:
        self.held.pop(uid, None)
        self.renewed.pop(uid, None)
        self.binding.discard(uid)


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


class Worker(threading.Thread):
    """Filters, binds and ends its own Pods at random; keeps what is granted to them."""

    def __init__(self, state: ClusterState, number: int) -> None:
        super().__init__(daemon=True)
        self.state = state
        self.number = number
        self.random = random.Random(number)
        self.live: dict[str, Hold] = {}
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            for serial in range(120):
                self.step(f"w{self.number}-{serial}")
        except BaseException as error:  # noqa: BLE001 the test shows it
            self.failure = error

    def step(self, uid: str) -> None:
        if self.live and self.random.random() < 0.5:
            self.state.remove_pod(self.live.popitem()[0])
            return
        view = pod(uid, self.random.choice(SIZES), count=self.random.choice((1, 1, 2)))
        answer = self.state.filter(view, request_of(view), NODES)
        if not isinstance(answer, Held):
            assert answer.reasons.keys() == set(NODES)
            return
        self.state.mark_binding(uid)
        if self.random.random() < 0.3:
            self.state.release(uid)
            return
        self.state.confirm(uid)
        self.state.set_pod(bound(view, answer.hold))
        self.live[uid] = answer.hold


def test_occupancy_is_the_sum_of_what_was_granted_under_32_threads() -> None:
    state = cluster()
    workers = [Worker(state, number) for number in range(32)]
    stop = threading.Event()
    watched: list[BaseException] = []

    def watch() -> None:
        try:
            while not stop.is_set():
                taken(state.snapshot())
                state.expire_holds()
        except BaseException as error:  # noqa: BLE001 the test shows it
            watched.append(error)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(50)
    stop.set()
    watcher.join(10)
    assert [worker.failure for worker in workers if worker.failure] == []
    assert watched == []
    live = [hold for worker in workers for hold in worker.live.values()]
    expected = granted((hold.node, hold.reservations) for hold in live)
    found = taken(state.snapshot())
    assert {key: mask for key, mask in found.items() if mask} == expected
