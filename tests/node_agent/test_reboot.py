"""After a reboot or a driver reload: Pods that go on get their instances back, others nothing."""

from __future__ import annotations

from base64 import b64encode

import pytest

from hami_web.core.reservation import RuntimeIdentity
from hami_web.simulator.faults import RequestMatch
from node_agent.nvml.simulated import GpuSpec
from tests.node_agent.lab import Lab, open_lab, wait_until
from tests.node_agent.test_start import verdicts


def identity(lab: Lab, pod: str = "job") -> RuntimeIdentity:
    found = lab.reservations(pod)[0].identity
    assert found is not None
    return found


def run_a_job(lab: Lab, name: str = "job", start: int = 2, gpu: int = 0) -> RuntimeIdentity:
    with lab.agent():
        lab.reserve(name, [(gpu, "2g.10gb", start, 2)])
        lab.kubelet.allocate(lab.ids(gpu=gpu)[0])
        lab.set_status(name, "Running", "running")
    return identity(lab, name)


def test_a_running_pod_gets_its_instance_and_its_uuid_back(lab: Lab) -> None:
    before = run_a_job(lab)
    lab.hardware.reboot()
    assert lab.placements() == []
    with lab.agent() as agent:
        assert verdicts(agent) == {"stale": 1}
        assert lab.placements() == [(2, 2)]
        assert identity(lab) == before
        wait_until(lambda: lab.events("job", "MigInstanceRestored"), "told")
        lab.delete("job")
        wait_until(lambda: lab.placements() == [], "reclaimed")


def test_a_driver_reload_under_the_agent_is_a_reboot_too(lab: Lab) -> None:
    with lab.agent(HAMI_DISCOVERY_SECONDS="0.2"):
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        lab.kubelet.allocate(lab.ids()[0])
        lab.set_status("job", "Running", "running")
        lab.hardware.reload_driver()
        wait_until(lambda: lab.placements() == [(2, 2)], "made anew", 20)


def test_another_uuid_is_written_and_the_pod_told(lab: Lab) -> None:
    before = run_a_job(lab)
    lab.hardware.reboot()
    lab.hardware.set_options(uuids="random")
    with lab.agent():
        assert identity(lab) != before
        (event,) = wait_until(lambda: lab.events("job", "MigInstanceRestored"), "told")
        assert "the Pod must be recreated" in event["message"]


def test_a_lost_annotation_of_an_instance_made_anew_is_finished_later(lab: Lab) -> None:
    before = run_a_job(lab)
    lab.hardware.reboot()
    lab.hardware.set_options(uuids="random")
    lab.server.faults.answer(500, RequestMatch(verb="patch", resource="pods"), times=1)
    with lab.agent(HAMI_RECLAIM_SECONDS="0.1"):
        wait_until(lambda: identity(lab) != before, "written")
        assert lab.placements() == [(2, 2)]


def test_a_crash_after_making_anew_is_finished_at_the_next_start(lab: Lab) -> None:
    before = run_a_job(lab)
    lab.hardware.reboot()
    lab.hardware.set_options(uuids="random")
    lab.server.faults.answer(500, RequestMatch(verb="patch", resource="pods"), times=None)
    with lab.agent():
        assert lab.placements() == [(2, 2)]
    lab.server.faults.clear()
    with lab.agent(HAMI_RECLAIM_SECONDS="0.1") as agent:
        assert verdicts(agent) == {"adopt": 1}
        wait_until(lambda: identity(lab) != before, "written")


def test_an_instance_that_somebody_destroyed_is_not_made_anew(lab: Lab) -> None:
    """Without a reboot a missing instance means another owner, and the agent does not fight."""
    run_a_job(lab)
    lab.hardware.destroy_instance(0, lab.hardware.gpu(0).instances[0].gi_id)
    with lab.starting_agent() as agent:
        wait_until(lambda: "destroyed by another program" in agent.problem(), "said")
        assert verdicts(agent) == {"stale": 1}
        assert lab.placements() == []


def test_a_pod_that_ended_during_the_reboot_gets_nothing(lab: Lab) -> None:
    run_a_job(lab)
    lab.hardware.reboot()
    lab.set_status("job", "Failed", "terminated")
    with lab.agent():
        assert lab.placements() == []


def test_an_unsigned_reservation_is_not_made_anew_where_signatures_are_asked_for(lab: Lab) -> None:
    run_a_job(lab)
    lab.hardware.reboot()
    keys = lab.folder / "keys"
    keys.write_text(f"k1 {b64encode(bytes(32)).decode()}\n")
    with lab.starting_agent(HAMI_SIGNING_KEYS=str(keys)) as agent:
        wait_until(lambda: not agent.problem(), "ready")
        assert lab.placements() == []
        wait_until(lambda: lab.events("job", "MigInstanceLost"), "told")


def test_a_taken_placement_is_left_and_the_pod_told(lab: Lab) -> None:
    run_a_job(lab)
    lab.hardware.reboot()
    lab.hardware.create_instance(0, "3g.20gb", 0)
    with lab.agent():
        assert lab.placements() == [(0, 4)]
        assert wait_until(lambda: lab.events("job", "MigInstanceInDoubt"), "told")


def test_another_index_order_after_the_reboot_changes_nothing(two_gpus: Lab) -> None:
    lab = two_gpus
    run_a_job(lab, gpu=1)
    uuid = lab.gpus[1]
    lab.hardware.reboot(index_order=[1, 0])
    assert lab.hardware.gpu(0).uuid == uuid
    with lab.agent():
        assert [(i.start, i.size) for i in lab.hardware.gpu(uuid).instances] == [(2, 2)]


def test_a_replaced_gpu_leaves_its_pod_told_and_the_new_one_works(lab: Lab) -> None:
    run_a_job(lab)
    lab.hardware.create(["a100-sxm4-40gb"], seed="another card")
    with lab.agent():
        assert wait_until(lambda: lab.events("job", "MigInstanceInDoubt"), "told")
        assert lab.journal() == []
        lab.reserve("next", [(0, "1g.5gb", 0, 1)])
        lab.kubelet.allocate(lab.ids()[0])


def test_a_gpu_that_forgot_its_mode_gets_it_back_with_its_instances() -> None:
    """Hopper keeps the mode in the driver's memory only."""
    with open_lab(GpuSpec("h100-sxm5-80gb")) as lab:
        policy = lab.folder / "policy.yaml"
        policy.write_text(
            "nvidia:\n  migProfileAllowlist:\n"
            '  - {models: ["H100-SXM5-80GB"], profiles: ["1g.10gb", "2g.20gb"]}\n'
        )
        with lab.agent():
            lab.reserve("job", [(0, "2g.20gb", 2, 2)])
            lab.kubelet.allocate(lab.ids()[0])
            lab.set_status("job", "Running", "running")
        before = identity(lab)
        lab.hardware.reboot()
        assert not lab.hardware.gpu(0).mig_current
        with lab.agent():
            assert lab.hardware.gpu(0).mig_current
            assert lab.placements() == [(2, 2)]
            assert identity(lab) == before


def test_an_instance_that_cannot_be_made_anew_is_told_and_not_tried_for_ever(two_gpus: Lab) -> None:
    lab = two_gpus
    for index, name in enumerate(("one", "two")):
        run_a_job(lab, name, gpu=index)
    lab.hardware.reboot()
    lab.hardware.fail("nvmlGpuInstanceCreateComputeInstance", 999, times=2)
    with lab.agent():
        assert lab.journal() == []
        assert all(lab.events(name, "MigInstanceLost") for name in ("one", "two"))
    assert lab.placements(0) == lab.placements(1) == []


@pytest.mark.parametrize("text", ['"earlier": 5', '"earlier": [{}]'])
def test_an_unreadable_past_puts_the_journal_in_doubt(lab: Lab, text: str) -> None:
    run_a_job(lab)
    path = lab.folder / "state/instances.json"
    path.write_text(path.read_text().replace('"earlier":[]', text))
    with lab.agent():
        assert list((lab.folder / "state").glob("instances.json.malformed-*"))
        assert lab.placements() == [(2, 2)]
