"""Reserving, ending, kills, reboots, errors and meddling in any order: all keep what is theirs.

The agent is a real process and dies by SIGKILL only. ``HAMI_RANDOM_LIVES`` is the number of lives.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack

import grpc
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hami_web.core.placement import Placement
from hami_web.core.reservation import RuntimeIdentity
from tests.node_agent.agents import Agents, open_zygote
from tests.node_agent.lab import NODE, Lab, open_lab, wait_until

SHAPES = [("1g.5gb", start, 1) for start in range(7)]
SHAPES += [("2g.10gb", start, 2) for start in (0, 2, 4)] + [("3g.20gb", 0, 4), ("3g.20gb", 4, 4)]
XIDS = [31, 92, 119, 79]
LIVES = int(os.environ.get("HAMI_RANDOM_LIVES", "4"))
ENDS = ["delete", "Succeeded", "Failed"]
Shape = tuple[str, int, int]


class OneNode(RuleBasedStateMachine):
    """A model of who owns which placement, beside a real agent over simulated hardware.

    ``broken`` Pods run and lost their instance to somebody; their placement stays theirs.
    """

    zygote: subprocess.Popen[str]

    def __init__(self) -> None:
        super().__init__()
        self.closing = ExitStack()
        self.lab: Lab = self.closing.enter_context(open_lab())
        self.agents = Agents(self.zygote, self.lab)
        self.lab.environment |= {"HAMI_RECLAIM_SECONDS": "0.3"}
        self.running: dict[str, tuple[Placement, RuntimeIdentity]] = {}
        self.broken: dict[str, tuple[Placement, RuntimeIdentity]] = {}
        self.foreign: set[Placement] = set()
        self.made = 0
        self.agents.start_and_wait()

    def teardown(self) -> None:
        self.agents.kill()
        self.closing.close()

    @property
    def there(self) -> set[Placement]:
        return {placement for placement, _ in self.running.values()} | self.foreign

    @property
    def taken(self) -> set[Placement]:
        return self.there | {placement for placement, _ in self.broken.values()}

    def is_free(self, placement: Placement) -> bool:
        return not any(placement.overlaps(other) for other in self.taken)

    def reserve(self, shape: Shape) -> tuple[str, str, Placement]:
        profile, start, size = shape
        name = f"pod-{self.made}"
        self.made += 1
        self.lab.reserve(name, [(0, profile, start, size)])
        return name, f"{self.lab.gpus[0]}-{self.made}", Placement(start, size)

    def runs(self, name: str, placement: Placement) -> None:
        self.lab.set_status(name, "Running", "running")
        identity = self.lab.reservations(name)[0].identity
        assert identity is not None
        self.running[name] = (placement, identity)

    @rule(shape=st.sampled_from(SHAPES))
    def run_a_pod(self, shape: Shape) -> None:
        """A reservation that overlaps is refused and changes nothing; any other is realized."""
        name, device, placement = self.reserve(shape)
        if self.is_free(placement):
            self.lab.kubelet.allocate(device)
            self.runs(name, placement)
        else:
            with pytest.raises(grpc.RpcError):
                self.lab.kubelet.allocate(device)
            self.lab.set_status(name, "Failed")

    @rule(shape=st.sampled_from(SHAPES), call=st.integers(1, 250), again=st.booleans())
    def run_a_pod_and_kill(self, shape: Shape, call: int, again: bool) -> None:
        """The agent dies at any of its calls; the kubelet asks again, or fails the Pod."""
        name, device, placement = self.reserve(shape)
        self.agents.arm(call, "before")
        done = True
        try:
            self.lab.kubelet.allocate(device, timeout=10)
        except grpc.RpcError:
            done = False
        self.agents.kill()
        self.agents.disarm()
        self.agents.start_and_wait()
        if done and not self.is_free(placement):
            raise AssertionError(f"{name} was given {placement}, which was taken")
        if not done and again and self.is_free(placement):
            self.lab.kubelet.allocate(device)
            done = True
        if done:
            self.runs(name, placement)
        else:
            self.lab.set_status(name, "Failed")
        self.settle()

    @precondition(lambda self: self.running or self.broken)
    @rule(data=st.data(), how=st.sampled_from(ENDS))
    def end_a_pod(self, data: st.DataObject, how: str) -> None:
        self.end(data.draw(st.sampled_from(sorted(self.running | self.broken))), how)
        self.settle()

    def end(self, name: str, how: str) -> None:
        self.running.pop(name, None)
        self.broken.pop(name, None)
        if how == "delete":
            self.lab.delete(name)
        else:
            self.lab.set_status(name, how, "terminated")

    @rule(shape=st.sampled_from(SHAPES))
    def meddle(self, shape: Shape) -> None:
        profile, start, size = shape
        if self.is_free(Placement(start, size)):
            self.lab.hardware.create_instance(0, profile, start)
            self.foreign.add(Placement(start, size))

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def take_away(self, data: st.DataObject) -> None:
        """Somebody destroys the instance of a Pod that runs: the agent does not fight."""
        name = data.draw(st.sampled_from(sorted(self.running)))
        placement, identity = self.running[name]
        self.lab.hardware.destroy_instance(0, identity.gpu_instance_id)
        self.broken[name] = self.running.pop(name)
        assert placement not in self.there

    @rule(shape=st.sampled_from(SHAPES), ends=st.booleans(), data=st.data())
    def another_owner_shows(self, shape: Shape, ends: bool, data: st.DataObject) -> None:
        """While its sign stands nothing is made, and nothing that ends is destroyed."""
        self.sign("all-disabled")
        before = self.lab.placements()
        name, device, _ = self.reserve(shape)
        with pytest.raises(grpc.RpcError):
            self.lab.kubelet.allocate(device)
        self.lab.set_status(name, "Failed")
        if ends and self.running:
            ended = data.draw(st.sampled_from(sorted(self.running)))
            self.end(ended, "delete")
            wait_until(lambda: self.lab.events(ended, "MigReclaimBlocked"), "it stays")
        assert self.lab.placements() == before
        self.sign(None)
        self.settle()

    def sign(self, value: str | None) -> None:
        labels = {"metadata": {"labels": {"nvidia.com/mig.config": value}}}
        self.lab.client.patch(f"/api/v1/nodes/{NODE}", labels)

    @rule(xid=st.sampled_from(XIDS), data=st.data())
    def report_an_error(self, xid: int, data: st.DataObject) -> None:
        """Errors stop new work at most; what runs keeps its instance."""
        instances = [i.gi_id for i in self.lab.hardware.gpu(0).instances if i.compute_instances]
        where = data.draw(st.sampled_from([None, *sorted(instances)]))
        self.lab.hardware.xid(0, xid, where)

    @rule(lose_journal=st.booleans(), data=st.data())
    def kill(self, lose_journal: bool, data: st.DataObject) -> None:
        """Pods may end while the agent is away; with the journal lost too, theirs stay foreign."""
        self.agents.kill()
        if lose_journal:
            for name in list(self.broken):
                self.end(name, "Failed")
        if self.running and data.draw(st.booleans()):
            name = data.draw(st.sampled_from(sorted(self.running)))
            placement, _ = self.running[name]
            self.end(name, "delete")
            if lose_journal:
                self.foreign.add(placement)
        if lose_journal:
            (self.lab.folder / "state/instances.json").unlink(missing_ok=True)
        self.come_back(has_records=not lose_journal)

    @rule()
    def reboot(self) -> None:
        """All instances go; those of Pods that go on come back, also what was taken away."""
        self.agents.kill()
        self.lab.hardware.reboot()
        self.foreign.clear()
        self.running |= self.broken
        self.broken.clear()
        self.come_back(has_records=True)

    def come_back(self, *, has_records: bool) -> None:
        self.lab.create_pod(f"idle-{self.made}")
        self.lab.bind(f"idle-{self.made}", {})
        self.made += 1
        recorded = has_records and self.lab.journal_or_nothing()
        if not (self.running or self.broken or recorded):
            # Nobody uses the GPU, and no record of ours is on it: it is cleaned.
            self.foreign.clear()
        self.agents.start_and_wait()
        self.settle()

    def settle(self) -> None:
        expected = sorted((p.start, p.size) for p in self.there)
        try:
            wait_until(lambda: self.lab.placements() == expected, f"settled at {expected}")
        except AssertionError:
            print(self.lab.placements(), self.agents.log.read_text()[-6000:])
            raise
        owners = len(self.running) + len(self.broken)
        wait_until(lambda: len(self.lab.journal_or_nothing()) == owners, "recorded")

    @invariant()
    def every_owner_has_its_own_instance(self) -> None:
        gpu = self.lab.hardware.gpu(0)
        found = {(i.start, i.size): i.gi_id for i in gpu.instances}
        for name, (placement, identity) in self.running.items():
            assert found[placement.start, placement.size] == identity.gpu_instance_id
            assert self.lab.reservations(name)[0].identity == identity
        assert {(p.start, p.size) for p in self.foreign} <= found.keys()


@pytest.mark.slow
@pytest.mark.timeout(120 if LIVES <= 4 else 14_400)
class TestOneNode(OneNode.TestCase):  # type: ignore[name-defined,misc]
    settings = settings(
        max_examples=LIVES,
        stateful_step_count=12,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )

    @classmethod
    def setUpClass(cls) -> None:
        cls.closing = ExitStack()
        OneNode.zygote = cls.closing.enter_context(open_zygote())

    @classmethod
    def tearDownClass(cls) -> None:
        cls.closing.close()
