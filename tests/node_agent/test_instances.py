"""Instances: made whole or not at all, and destroyed only as what they were made as."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hami_web.core.placement import Placement
from node_agent import journal as journal_module
from node_agent.errors import (
    CapabilityMismatch,
    DeadlineExceeded,
    InstanceBusy,
    InstanceUnverified,
    JournalFailure,
    PlacementTaken,
)
from node_agent.idle import IdleGpus
from node_agent.instances import InstanceManager
from node_agent.journal import DriverLoad, Journal
from node_agent.locks import Deadline, GpuLocks
from node_agent.nvml import simulated
from node_agent.nvml.driver import PynvmlDriver
from node_agent.nvml.ports import DriverError, DriverInUse, MigDriver
from node_agent.nvml.simulated import Fault, SimulatedNode
from node_agent.ownership import Claim, InstanceSpec, Owner, RecordState

CREATE_GI = "nvmlDeviceCreateGpuInstanceWithPlacement"
CREATE_CI = "nvmlGpuInstanceCreateComputeInstance"
DESTROY_CI = "nvmlComputeInstanceDestroy"
DESTROY_GI = "nvmlGpuInstanceDestroy"
IN_USE, INSUFFICIENT, UNKNOWN, SUCCESS = 19, 23, 999, 0


@dataclass
class Bench:
    """One A100, its driver and a manager."""

    node: SimulatedNode
    driver: MigDriver
    journal: Journal
    manager: InstanceManager

    @property
    def gpu(self) -> str:
        return self.node.gpu_uuids()[0]

    def claim(self, uid: str = "a", start: int = 2, profile: str = "2g.10gb") -> Claim:
        size = int(profile[0])
        spec = InstanceSpec(self.gpu, profile, Placement(start, size))
        return Claim(Owner(uid, 0, 0), "ns", f"pod-{uid}", spec)

    def realize(self, claim: Claim, seconds: float = 5.0) -> str:
        return self.manager.realize(claim, ("id",), Deadline(seconds)).identity.mig_uuid

    def release(self) -> None:
        (record,) = self.manager.records()
        self.manager.release(record, Deadline(5))

    def placements(self) -> list[tuple[int, int]]:
        return sorted((i.start, i.size) for i in self.node.gpu(0).instances)

    def states(self) -> list[RecordState]:
        return [record.state for record in self.manager.records()]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    node = SimulatedNode(tmp_path / "nvml")
    node.create(["a100-sxm4-40gb"], seed="x")
    simulated.install(tmp_path / "nvml")
    journal = Journal(tmp_path / "state", DriverLoad("b", "d"))
    with PynvmlDriver() as driver:
        manager = InstanceManager(driver, journal, GpuLocks(tmp_path / "locks"))
        yield Bench(node, driver, journal, manager)
    simulated.uninstall()
    node.close()


def test_the_same_owner_gets_the_same_instance(bench: Bench) -> None:
    assert bench.realize(bench.claim()) == bench.realize(bench.claim())
    assert bench.placements() == [(2, 2)]


@pytest.mark.parametrize("code", [INSUFFICIENT, IN_USE, UNKNOWN])
def test_a_refused_creation_leaves_nothing(bench: Bench, code: int) -> None:
    bench.node.fail(CREATE_GI, code, times=5)
    with pytest.raises(DriverError):
        bench.realize(bench.claim())
    assert bench.placements() == []
    assert bench.states() == []


def test_an_instance_that_somebody_made_meanwhile_is_not_taken_back(bench: Bench) -> None:
    bench.node.add_fault(Fault(CREATE_GI, code=INSUFFICIENT, effect=True))
    with pytest.raises(DriverError):
        bench.realize(bench.claim())
    assert bench.placements() == [(2, 2)]
    assert bench.states() == []


def test_a_gpu_instance_without_its_compute_instance_is_taken_back(bench: Bench) -> None:
    bench.node.fail(CREATE_CI, UNKNOWN, times=5)
    with pytest.raises(DriverError):
        bench.realize(bench.claim())
    assert bench.placements() == []
    assert bench.states() == []


def test_a_rollback_that_is_refused_stays_on_record_and_is_finished(bench: Bench) -> None:
    bench.node.fail(CREATE_CI, UNKNOWN, times=5)
    bench.node.fail(DESTROY_GI, IN_USE, times=1)
    with pytest.raises(DriverError):
        bench.realize(bench.claim())
    assert bench.states() == [RecordState.RECLAIMING]
    with pytest.raises(PlacementTaken, match="being reclaimed"):
        bench.realize(bench.claim())
    bench.release()
    assert (bench.placements(), bench.states()) == ([], [])


def test_a_destroy_that_only_says_success_is_not_believed(bench: Bench) -> None:
    bench.realize(bench.claim())
    bench.node.add_fault(Fault(DESTROY_GI, code=SUCCESS))
    with pytest.raises(InstanceUnverified, match="still lists it"):
        bench.release()
    assert bench.states() == [RecordState.RECLAIMING]
    bench.release()
    assert (bench.placements(), bench.states()) == ([], [])


def test_a_refused_destroy_is_repeatable_at_each_half(bench: Bench) -> None:
    bench.realize(bench.claim())
    bench.node.fail(DESTROY_CI, IN_USE)
    with pytest.raises(DriverInUse):
        bench.release()
    bench.node.fail(DESTROY_GI, IN_USE)
    with pytest.raises(DriverInUse):
        bench.release()
    assert bench.node.gpu(0).instances[0].compute_instances == []
    bench.release()
    assert bench.placements() == []


def test_a_process_holds_its_instance(bench: Bench) -> None:
    bench.realize(bench.claim())
    pid = bench.node.attach(0, bench.node.gpu(0).instances[0].gi_id, 0)
    with pytest.raises(InstanceBusy, match=f"process {pid}"):
        bench.release()
    assert "in use by process" in bench.manager.records()[0].reason


def test_a_process_holds_no_other_instance(bench: Bench) -> None:
    bench.realize(bench.claim())
    foreign, _ = bench.node.create_instance(0, "1g.5gb", 0)
    bench.node.attach(0, foreign.gi_id, 0)
    bench.release()
    assert bench.placements() == [(0, 1)]


def test_an_instance_replaced_from_outside_is_left_alone(bench: Bench) -> None:
    bench.node.set_options(uuids="random")
    bench.realize(bench.claim())
    bench.node.destroy_instance(0, bench.node.gpu(0).instances[0].gi_id)
    bench.node.create_instance(0, "2g.10gb", 2)
    bench.release()
    assert bench.placements() == [(2, 2)]
    assert bench.states() == []


def test_a_replaced_instance_is_not_handed_out(bench: Bench) -> None:
    bench.node.set_options(uuids="random")
    bench.realize(bench.claim())
    bench.node.destroy_instance(0, bench.node.gpu(0).instances[0].gi_id)
    bench.node.create_instance(0, "2g.10gb", 2)
    with pytest.raises(PlacementTaken, match="changed from outside"):
        bench.realize(bench.claim())


def test_an_instance_of_another_profile_at_its_place_is_left_alone(bench: Bench) -> None:
    bench.realize(bench.claim())
    bench.node.destroy_instance(0, bench.node.gpu(0).instances[0].gi_id)
    bench.node.create_instance(0, "1g.5gb", 2)
    bench.release()
    assert bench.placements() == [(2, 1)]


def test_a_placement_stays_its_owners_when_the_instance_was_destroyed_from_outside(
    bench: Bench,
) -> None:
    bench.realize(bench.claim())
    bench.node.destroy_instance(0, bench.node.gpu(0).instances[0].gi_id)
    with pytest.raises(PlacementTaken, match="is held by Pod ns/pod-a"):
        bench.realize(bench.claim("b"))
    assert bench.placements() == []


def test_an_owner_has_one_spec(bench: Bench) -> None:
    bench.realize(bench.claim())
    with pytest.raises(PlacementTaken, match="already owns"):
        bench.realize(bench.claim(start=4))


@pytest.mark.parametrize("start", [1, 3])
def test_an_overlap_is_refused(bench: Bench, start: int) -> None:
    bench.realize(bench.claim())
    with pytest.raises((PlacementTaken, CapabilityMismatch)):
        bench.realize(bench.claim("b", start, "1g.5gb" if start == 3 else "2g.10gb"))
    assert bench.placements() == [(2, 2)]


def test_without_time_nothing_is_begun(bench: Bench) -> None:
    with pytest.raises(DeadlineExceeded):
        bench.realize(bench.claim(), seconds=0.0)
    assert (bench.placements(), bench.states()) == ([], [])


def test_what_took_too_long_is_taken_back(bench: Bench) -> None:
    bench.node.add_fault(Fault(CREATE_CI, latency_s=0.3))
    with pytest.raises(DeadlineExceeded):
        bench.realize(bench.claim(), seconds=0.2)
    assert (bench.placements(), bench.states()) == ([], [])


def test_without_a_journal_nothing_is_created(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_path: Path, _text: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(journal_module, "write_durably", full)
    with pytest.raises(JournalFailure):
        bench.realize(bench.claim())
    assert bench.placements() == []


def test_a_result_that_cannot_be_recorded_is_taken_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = journal_module.write_durably

    def refuse_results(path: Path, text: str) -> None:
        if '"realized"' in text:
            raise OSError(28, "No space left on device")
        write(path, text)

    monkeypatch.setattr(journal_module, "write_durably", refuse_results)
    with pytest.raises(JournalFailure):
        bench.realize(bench.claim())
    assert (bench.placements(), bench.states()) == ([], [])


def test_releasing_a_record_twice_is_harmless(bench: Bench) -> None:
    bench.realize(bench.claim())
    (record,) = bench.manager.records()
    bench.manager.release(record, Deadline(5))
    bench.realize(bench.claim("b"))
    bench.manager.release(record, Deadline(5))
    assert bench.placements() == [(2, 2)]


def test_a_gpu_with_a_process_is_not_cleaned(bench: Bench) -> None:
    idle = IdleGpus(bench.driver, GpuLocks(bench.node.state_dir / "locks"))
    instance, _ = bench.node.create_instance(0, "1g.5gb", 0)
    pid = bench.node.attach(0, instance.gi_id, 0)
    assert idle.clean(bench.gpu, Deadline(5)) == 0
    bench.node.detach(pid)
    assert idle.clean(bench.gpu, Deadline(5)) == 1


def test_a_half_instance_is_not_adopted(bench: Bench) -> None:
    bench.node.create_instance(0, "2g.10gb", 2, compute=False)
    with pytest.raises(InstanceUnverified, match="no single compute instance"):
        bench.manager.adopt(bench.claim(), bench.driver.instances(bench.gpu)[0])
