"""Any order of reserving, ending, restarting and meddling: nobody's instance is ever touched."""

from __future__ import annotations

from contextlib import ExitStack

import grpc
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hami_web.core.placement import Placement
from hami_web.core.reservation import RuntimeIdentity
from tests.node_agent.lab import Lab, open_lab, wait_until

SHAPES = [("1g.5gb", start, 1) for start in range(7)]
SHAPES += [("2g.10gb", start, 2) for start in (0, 2, 4)] + [("3g.20gb", 0, 4), ("3g.20gb", 4, 4)]
QUICK = {"HAMI_DISCOVERY_SECONDS": "600", "HAMI_RECLAIM_SECONDS": "0.2"}


class OneNode(RuleBasedStateMachine):
    """A model of who owns which placement, beside a real agent over simulated hardware."""

    def __init__(self) -> None:
        super().__init__()
        self.closing = ExitStack()
        self.lab: Lab = self.closing.enter_context(open_lab())
        self.agent = ExitStack()
        self.agent.enter_context(self.lab.agent(**QUICK))
        self.running: dict[str, tuple[Placement, RuntimeIdentity]] = {}
        self.foreign: set[Placement] = set()
        self.made = 0

    def teardown(self) -> None:
        self.agent.close()
        self.closing.close()

    @property
    def taken(self) -> set[Placement]:
        return {placement for placement, _ in self.running.values()} | self.foreign

    @rule(shape=st.sampled_from(SHAPES))
    def run_a_pod(self, shape: tuple[str, int, int]) -> None:
        """A reservation that overlaps is refused and changes nothing; any other is realized."""
        profile, start, size = shape
        placement = Placement(start, size)
        name = f"pod-{self.made}"
        self.made += 1
        self.lab.reserve(name, [(0, profile, start, size)])
        device = f"{self.lab.gpus[0]}-{self.made}"
        if any(placement.overlaps(other) for other in self.taken):
            with pytest.raises(grpc.RpcError):
                self.lab.kubelet.allocate(device)
            self.lab.set_status(name, "Failed")
            return
        self.lab.kubelet.allocate(device)
        self.lab.set_status(name, "Running", "running")
        identity = self.lab.reservations(name)[0].identity
        assert identity is not None
        self.running[name] = (placement, identity)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), how=st.sampled_from(["delete", "Succeeded", "Failed"]))
    def end_a_pod(self, data: st.DataObject, how: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.running)))
        del self.running[name]
        if how == "delete":
            self.lab.delete(name)
        else:
            self.lab.set_status(name, how, "terminated")
        self.settle()

    @rule(shape=st.sampled_from(SHAPES))
    def meddle(self, shape: tuple[str, int, int]) -> None:
        profile, start, size = shape
        if not any(Placement(start, size).overlaps(other) for other in self.taken):
            self.lab.hardware.create_instance(0, profile, start)
            self.foreign.add(Placement(start, size))

    @precondition(lambda self: self.running)
    @rule(lose_journal=st.booleans(), data=st.data())
    def restart(self, lose_journal: bool, data: st.DataObject) -> None:
        """Pods may end while the agent is away; with the journal lost too, theirs stay foreign."""
        self.agent.close()
        if data.draw(st.booleans()):
            name = data.draw(st.sampled_from(sorted(self.running)))
            placement, _ = self.running.pop(name)
            self.lab.delete(name)
            if lose_journal:
                self.foreign.add(placement)
        if lose_journal:
            (self.lab.folder / "state/instances.json").unlink()
        if not self.running:
            self.lab.create_pod(f"idle-{self.made}")
            self.lab.bind(f"idle-{self.made}", {})
            self.made += 1
            if lose_journal:
                # Nobody uses the GPU, and no record of ours is on it: it is cleaned.
                self.foreign.clear()
        self.agent = ExitStack()
        self.agent.enter_context(self.lab.agent(**QUICK))
        self.settle()

    def settle(self) -> None:
        expected = sorted((p.start, p.size) for p in self.taken)
        wait_until(lambda: self.lab.placements() == expected, f"settled at {expected}")

    @invariant()
    def every_owner_has_its_own_instance(self) -> None:
        gpu = self.lab.hardware.gpu(0)
        found = {(i.start, i.size): i.gi_id for i in gpu.instances}
        for name, (placement, identity) in self.running.items():
            assert found[placement.start, placement.size] == identity.gpu_instance_id
            assert self.lab.reservations(name)[0].identity == identity
        assert {(p.start, p.size) for p in self.foreign} <= found.keys()


OneNode.TestCase.settings = settings(
    max_examples=10,
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestOneNode = pytest.mark.slow(pytest.mark.timeout(120)(OneNode.TestCase))
