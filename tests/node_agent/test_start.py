"""The start of an agent: read, adopt, decide, then serve; and staying up with what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from hami_web.core import annotations as keys
from hami_web.core.blocked import decode_blocked
from hami_web.core.placement import Placement
from hami_web.simulator.faults import RequestMatch
from tests.node_agent.lab import NODE, Lab, wait_until


def verdicts(agent: Any) -> dict[str, float]:
    names = ("adopt", "await", "preserve", "stale")
    counts = {name: agent.metrics.adoptions.labels(name)._value.get() for name in names}
    return {name: count for name, count in counts.items() if count}


def run_two_jobs(lab: Lab) -> None:
    with lab.agent():
        lab.reserve("job", [(0, "1g.5gb", 6, 1)], [(0, "2g.10gb", 0, 2)])
        lab.kubelet.allocate(lab.ids()[0])
        lab.kubelet.allocate(lab.ids(2)[1])
        lab.set_status("job", "Running", "running")


def test_a_restarted_agent_adopts_and_still_reclaims(lab: Lab) -> None:
    run_two_jobs(lab)
    with lab.agent() as agent:
        assert verdicts(agent) == {"adopt": 2}
        assert lab.placements() == [(0, 2), (6, 1)]
        lab.delete("job")
        wait_until(lambda: lab.placements() == [], "reclaimed")


def test_a_lost_journal_is_rebuilt_from_the_annotations(lab: Lab) -> None:
    run_two_jobs(lab)
    (lab.folder / "state/instances.json").unlink()
    with lab.agent() as agent:
        assert verdicts(agent) == {"adopt": 2}
        lab.delete("job")
        wait_until(lambda: lab.placements() == [], "reclaimed")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version":9,"records":[]}', "\x00\xff"])
def test_an_unreadable_journal_is_kept_aside_and_destroys_nothing(lab: Lab, text: str) -> None:
    run_two_jobs(lab)
    (lab.folder / "state/instances.json").write_text(text)
    with lab.agent() as agent:
        assert verdicts(agent) == {"adopt": 2}
        assert lab.placements() == [(0, 2), (6, 1)]
        (aside,) = (lab.folder / "state").glob("instances.json.malformed-*")
        assert aside.read_text() == text


def test_a_pod_that_ended_while_the_agent_was_away_is_reclaimed(lab: Lab) -> None:
    run_two_jobs(lab)
    lab.delete("job")
    with lab.agent():
        wait_until(lambda: lab.placements() == [], "reclaimed")


def test_records_from_before_a_reboot_prove_nothing(lab: Lab) -> None:
    run_two_jobs(lab)
    lab.hardware.reboot()
    lab.hardware.create_instance(0, "3g.20gb", 4)
    with lab.agent() as agent:
        assert verdicts(agent) == {"preserve": 1, "stale": 1}
        lab.delete("job")
        wait_until(lambda: not lab.exists("job"), "deleted")
        lab.reserve("next", [(0, "1g.5gb", 0, 1)])
        lab.kubelet.allocate(lab.ids()[0])
        assert lab.placements() == [(0, 1), (4, 4)]


def test_one_bad_reservation_stops_no_other_adoption(lab: Lab) -> None:
    run_two_jobs(lab)
    lab.reserve("bad", [(0, "1g.5gb", 5, 1)])
    lab.annotate("bad", {keys.POD_MIG_ALLOCATIONS: "[{}]"})
    with lab.agent() as agent:
        assert verdicts(agent) == {"adopt": 2}


def test_a_bound_pod_is_awaited_and_then_served(lab: Lab) -> None:
    lab.reserve("job", [(0, "1g.5gb", 6, 1)])
    with lab.agent() as agent:
        assert verdicts(agent) == {"await": 1}
        assert lab.kubelet.allocate(lab.ids()[0])


def blocked(lab: Lab) -> dict[Placement, str]:
    text = lab.node_annotation(keys.NODE_MIG_BLOCKED) or ""
    return {item.placement: item.reason for item in decode_blocked(text)}


def test_a_foreign_instance_is_kept_and_published_as_blocked(lab: Lab) -> None:
    lab.reserve("job", [(0, "1g.5gb", 6, 1)])
    lab.hardware.create_instance(0, "2g.10gb", 0)
    with lab.agent():
        wait_until(lambda: blocked(lab) == {Placement(0, 2): "foreign instance"}, "blocked")
        lab.hardware.create_instance(0, "1g.5gb", 5, compute=False)
        wait_until(lambda: len(blocked(lab)) == 2, "found while running", 3)
        assert lab.placements() == [(0, 2), (5, 1)]


def test_an_instance_in_use_stays_as_reclaiming_until_its_process_ends(lab: Lab) -> None:
    run_two_jobs(lab)
    with lab.agent():
        gi = next(i for i in lab.hardware.gpu(0).instances if i.start == 6)
        process = lab.hardware.attach(0, gi.gi_id, 0)
        lab.delete("job")
        wait_until(lambda: "in use by process" in str(blocked(lab)), "published as blocked")
        wait_until(lambda: lab.placements() == [(6, 1)], "only the one in use is left")
        lab.hardware.detach(process)
        wait_until(lambda: lab.placements() == [], "reclaimed")
        wait_until(lambda: blocked(lab) == {}, "no longer blocked")


def stranger(lab: Lab) -> None:
    """Any Pod of the node, so that the list of Pods is not empty."""
    lab.create_pod("stranger")
    lab.bind("stranger", {})


def test_an_idle_gpu_is_cleaned_at_start(lab: Lab) -> None:
    stranger(lab)
    lab.hardware.create_instance(0, "2g.10gb", 0)
    lab.hardware.create_instance(0, "1g.5gb", 6, compute=False)
    with lab.agent():
        assert lab.placements() == []


@pytest.mark.parametrize(
    "reason", ["no-pods", "process", "reserved", "doubt", "label", "resource", "off", "journal"]
)
def test_a_gpu_with_any_doubt_is_not_cleaned(lab: Lab, reason: str) -> None:
    _, compute = lab.hardware.create_instance(0, "2g.10gb", 0)
    assert compute is not None
    changes = {}
    if reason != "no-pods":
        stranger(lab)
    if reason == "process":
        lab.hardware.attach(0, lab.hardware.gpu(0).instances[0].gi_id, 0)
    if reason in ("reserved", "doubt"):
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
    if reason == "doubt":
        lab.annotate("job", {keys.POD_MIG_ALLOCATIONS: "x"})
    if reason == "label":
        lab.client.patch(
            f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {"nvidia.com/mig.config": "all-1g"}}}
        )
    if reason == "resource":
        lab.client.patch(
            f"/api/v1/nodes/{NODE}/status", {"status": {"capacity": {"nvidia.com/mig-1g.5gb": "7"}}}
        )
    if reason == "off":
        changes["HAMI_CLEAN_IDLE_GPUS"] = "false"
    if reason == "journal":
        (lab.folder / "state").mkdir()
        (lab.folder / "state/instances.json").write_text("{")
    with lab.agent(**changes):
        assert lab.placements() == [(0, 2)]


def test_a_wrong_node_name_destroys_nothing(lab: Lab) -> None:
    run_two_jobs(lab)
    with lab.starting_agent(NODE_NAME="gpu-n9", HAMI_RECLAIM_SECONDS="0.1") as agent:
        wait_until(lambda: "cannot be read" in agent.problem(), "said why")
        assert not lab.kubelet.devices
    assert lab.placements() == [(0, 2), (6, 1)]


def test_an_unreachable_api_server_keeps_the_agent_waiting(lab: Lab) -> None:
    run_two_jobs(lab)
    lab.server.faults.answer(503, RequestMatch(resource="pods"), times=2)
    with lab.agent():
        assert lab.placements() == [(0, 2), (6, 1)]


def test_a_failing_list_of_pods_destroys_nothing(lab: Lab) -> None:
    with lab.agent(HAMI_RECLAIM_SECONDS="0.1") as agent:
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
        lab.server.faults.answer(500, RequestMatch(verb="list", resource="pods"), times=None)
        lab.delete("job")
        skipped = agent.metrics.skipped.labels("cluster")
        wait_until(lambda: skipped._value.get() > 3, "passes without a list")
        assert lab.placements() == [(6, 1)]
        lab.server.faults.clear()
        wait_until(lambda: lab.placements() == [], "reclaimed")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"driver": "not_loaded"}, "NVML cannot be used"),
        ({"driver": "mismatch"}, "NVML cannot be used"),
        ({"permission": "user"}, "no device is offered: GPU-"),
    ],
)
def test_a_missing_driver_is_said_and_waited_for(
    lab: Lab, options: dict[str, str], said: str
) -> None:
    lab.hardware.set_options(**options)
    with lab.starting_agent() as agent:
        wait_until(lambda: said in agent.problem(), f"said: {agent.problem()}")
        assert lab.kubelet.devices == ()
        lab.hardware.set_options(driver="loaded", permission="root")
        wait_until(lambda: not agent.problem(), "ready")
        wait_until(lambda: lab.kubelet.devices, "offered")


def test_a_missing_policy_offers_nothing_until_it_is_there(lab: Lab) -> None:
    policy = lab.folder / "policy.yaml"
    text = policy.read_text()
    policy.write_text("nvidia: {}")
    with lab.starting_agent(HAMI_DISCOVERY_SECONDS="0.1") as agent:
        wait_until(lambda: "migProfileAllowlist" in agent.problem(), "said")
        wait_until(lambda: lab.node_annotation(keys.NODE_REGISTER) == "[]", "nothing published")
        assert lab.kubelet.devices == ()
        policy.write_text(text)
        wait_until(lambda: lab.kubelet.devices, "offered")
        policy.write_text("nvidia: [")
        wait_until(lambda: lab.kubelet.devices, "the last good one stays in force")


def test_two_agents_never_work_on_one_state_folder(lab: Lab) -> None:
    with lab.agent_process(), lab.starting_agent() as second:
        wait_until(lambda: "another agent process" in second.problem(), "the second one waits")
