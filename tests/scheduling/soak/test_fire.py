"""Any order of calls, faults, crashes and failovers: nothing is shared, nothing is left."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from hami_web.scheduling import bind as bind_module
from hami_web.scheduling import binding, nodelock, runtime, unsettled
from hami_web.simulator.faults import RequestMatch
from tests.scheduling.soak.world import EXTENDER, World, eventually

SIZES = (4000, 9000, 19000, 40000)
NAMES = [f"pod-{number}" for number in range(5)]
TARGETS = {
    "binding": RequestMatch(subresource="binding", user=EXTENDER),
    "node patch": RequestMatch(verb="patch", resource="nodes", user=EXTENDER),
    "pod read": RequestMatch(verb="get", resource="pods", user=EXTENDER),
    "watch": RequestMatch(verb="watch", user=EXTENDER),
    "list": RequestMatch(verb="list", user=EXTENDER),
}
FAULTS = st.sampled_from(["drop", "lose-answer", "truncate", "500", "409", "429", "503"])
BOUND: list[str] = []
"""How each bind of the whole test ended."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times that need not be real here."""
    monkeypatch.setattr(binding, "SETTLE_PAUSE_S", 0.005)
    monkeypatch.setattr(bind_module, "UNSEEN_AFTER_S", 1.0)
    monkeypatch.setattr(unsettled, "WRITE_MAY_COME_S", 0.3)
    monkeypatch.setattr(runtime, "SETTLE_EVERY_S", 0.05)
    monkeypatch.setattr(nodelock, "SWEEP_AFTER", timedelta(seconds=0))
    monkeypatch.setattr(nodelock, "UNBOUND_GRACE", timedelta(seconds=1))


class Fire(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.world = World(Path(self.folder.name))
        self.pods: dict[str, tuple[str, str | None]] = {}
        self.world.ready()

    @initialize()
    def begin(self) -> None:
        self.create("pod-0", 4000, 1)

    @rule(
        name=st.sampled_from(NAMES), memory=st.sampled_from(SIZES), count=st.sampled_from([1, 1, 2])
    )
    def create(self, name: str, memory: int, count: int) -> None:
        if self.world.pod(name) is None:
            self.world.create_pod(name, memory, count)
            pod = self.world.pod(name)
            assert pod is not None
            self.pods[name] = (pod.uid, None)

    @rule(
        name=st.sampled_from(NAMES),
        memory=st.sampled_from(SIZES),
        fault=st.none() | FAULTS,
        target_of=st.sampled_from(sorted(TARGETS)),
        realized=st.sampled_from([True, True, False]),
    )
    def schedule(
        self, name: str, memory: int, fault: str | None, target_of: str, realized: bool
    ) -> None:
        """All that kube-scheduler does for a Pod, with a fault in the middle, and its Allocate."""
        self.create(name, memory, 1)
        self.filter(name, 1)
        if fault is not None:
            self.fault(target_of, fault, 1)
        self.bind(name)
        if realized:
            self.world.agents_turn()

    @rule(name=st.sampled_from(NAMES), times=st.integers(1, 2))
    def filter(self, name: str, times: int) -> None:
        if name not in self.pods:
            return
        uid, before = self.pods[name]
        found = {self.world.filter(name) for _ in range(times)}
        assert len(found) == 1, f"a repeated filter answered {found}"
        pod = self.world.pod(name)
        node = found.pop()
        if pod is not None and pod.node_name:
            assert node in (pod.node_name, None)
        self.pods[name] = (uid, node or before)

    @rule(name=st.sampled_from(NAMES))
    def bind(self, name: str) -> None:
        uid, node = self.pods.get(name, ("", None))
        if node is not None:
            BOUND.append(self.world.bind(name, uid, node).partition(":")[0])

    @rule(name=st.sampled_from(NAMES), node=st.sampled_from(["n1", "n2"]))
    def bind_what_was_not_chosen(self, name: str, node: str) -> None:
        uid, chosen = self.pods.get(name, ("", None))
        pod = self.world.pod(name)
        if pod is None or pod.node_name or chosen == node:
            return
        assert self.world.bind(name, uid, node) != ""
        again = self.world.pod(name)
        assert again is None or again.node_name == ""

    @rule(name=st.sampled_from(NAMES))
    def bind_with_another_uid(self, name: str) -> None:
        assert self.world.bind(name, "another", "n1") != ""

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        self.world.delete_pod(name)

    @rule(name=st.sampled_from(NAMES))
    def finish(self, name: str) -> None:
        pod = self.world.pod(name)
        if pod is not None and pod.node_name:
            self.world.finish_pod(name)

    @rule()
    def agents(self) -> None:
        self.world.agents_turn()

    @rule(
        target_of=st.sampled_from(sorted(TARGETS)),
        kind=FAULTS,
        times=st.integers(1, 3),
    )
    def fault(self, target_of: str, kind: str, times: int) -> None:
        faults, match = self.world.api.faults, TARGETS[target_of]
        if kind.isdigit():
            faults.answer(int(kind), match, times=times, retry_after=0 if kind == "429" else None)
        else:
            ordered: Any = kind
            faults.order(ordered, match, times=times)

    @rule()
    def cut_connections(self) -> None:
        self.world.api.close_connections()

    @rule()
    def forget_history(self) -> None:
        self.world.api.compact()
        self.world.api.close_connections()

    @rule()
    def crash(self) -> None:
        """The leader dies at once; its container starts again in the same Pod."""
        pod = self.world.leader.pod
        self.world.leader.crash()
        self.world.leader = self.world.start_replica(pod)

    @rule()
    def fail_over(self) -> None:
        """The leader stops; another replica takes over."""
        other = "b" if self.world.leader.pod == "a" else "a"
        standby = self.world.start_replica(other)
        self.world.leader.runtime.stop()
        self.world.leader = standby

    @invariant()
    def nothing_is_shared(self) -> None:
        self.world.check()
        self.world.ready()

    def teardown(self) -> None:
        world = self.world
        try:
            world.api.faults.clear()
            world.ready()
            for name in NAMES:
                world.delete_pod(name)
            world.agents_turn()
            try:
                eventually("no claims", lambda: not world.claims())
            except AssertionError as error:
                seen = [
                    (r.name, r.age_s(), r.list_age_s()) for r in world.leader.runtime.reflectors
                ]
                holds = dict(world.leader.runtime.state._holds.hold_times())
                raise AssertionError(f"{world.claims()}, watches {seen}, holds {holds}") from error
            eventually("no locks", lambda: not world.locks())
            world.agents_turn()
            assert [agent.instances for agent in world.agents.values()] == [{}, {}]
            assert len(world.leader.runtime.binder.unsettled) == 0
            assert world.leader.runtime.queue.is_empty
        finally:
            world.close()
            self.folder.cleanup()


def test_any_order_of_calls_faults_crashes_and_failovers_shares_and_leaves_nothing() -> None:
    run_state_machine_as_test(
        Fire,
        settings=settings(
            max_examples=8,
            stateful_step_count=40,
            deadline=None,
            phases=(Phase.explicit, Phase.generate),  # shrinking would take minutes
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert BOUND.count("") > 5, f"too few binds for a test of them: {BOUND}"
