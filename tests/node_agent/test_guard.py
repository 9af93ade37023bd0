"""Beside another owner of the MIG layout nothing is made or destroyed, and all goes on after it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import grpc
import pytest

from hami_web.core import annotations as keys
from hami_web.core.blocked import decode_blocked, is_reclaiming
from hami_web.simulator.faults import RequestMatch
from node_agent import guard
from node_agent.bootstrap import Agent
from node_agent.cluster import connect
from node_agent.errors import OtherOwner, OwnerUnknown
from node_agent.guard import Guard
from node_agent.latest import Latest
from node_agent.locks import Deadline, GpuLocks
from tests.node_agent.lab import NODE, Lab, wait_until
from tests.node_agent.test_refusals import FAILED, refused
from tests.node_agent.test_told import condition

MANAGER = {"app": "nvidia-mig-manager"}
CONFIG = "nvidia.com/mig.config"


def label(lab: Lab, **labels: str | None) -> None:
    lab.client.patch(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": labels}})


def run(lab: Lab, name: str, start: int) -> None:
    lab.reserve(name, [(0, "1g.5gb", start, 1)])
    lab.kubelet.allocate(lab.ids()[0])
    lab.set_status(name, "Running", "running")


def run_program(lab: Lab, name: str, labels: dict[str, str]) -> None:
    metadata = {"name": name, "labels": labels}
    spec = {"containers": [{"name": "c", "image": "lab/program"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    lab.client.create("/api/v1/namespaces/default/pods", pod)
    lab.bind(name, {})


def problem(agent: Agent) -> float:
    return float(agent.metrics.other_owner._value.get())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (CONFIG, "all-disabled"),
        ("nvidia.com/mig.config.state", "pending"),
        ("nvidia.com/gpu.deploy.dcgm-exporter", "paused-for-mig-change"),
    ],
)
def test_allocate_refuses_by_name_and_heals_when_the_sign_goes(
    lab: Lab, key: str, value: str
) -> None:
    with lab.agent() as agent:
        label(lab, **{key: value})
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        code, text = refused(lab)
        assert code is FAILED
        assert text.startswith("[mig.other-owner] something else may change the MIG layout: ")
        assert f"label {key}={value}" in text
        assert lab.placements() == lab.journal_or_nothing() == []
        assert (
            f"{key}={value}"
            in wait_until(lambda: lab.events("job", "MigAllocationFailed"), "told")[0]["message"]
        )
        assert agent.metrics.allocations.labels("OtherOwner")._value.get() == 1
        wait_until(lambda: problem(agent) == 1, "shown")
        wait_until(lambda: condition(lab)["status"] == "False", "the node says it")
        assert condition(lab)["reason"] == "OtherOwner"
        label(lab, **{key: None})
        run(lab, "next", 6)
        assert lab.placements() == [(6, 1)]
        wait_until(lambda: condition(lab)["status"] == "True", "open again")


def test_a_program_that_comes_is_published_and_what_runs_is_preserved(lab: Lab) -> None:
    with lab.agent(HAMI_RECLAIM_SECONDS="60") as agent:
        run(lab, "job", 2)
        run_program(lab, "manager", MANAGER)
        told = wait_until(lambda: lab.node_annotation(keys.NODE_MIG_OWNER), "published")
        assert told == "Pod default/manager (MIG Manager)"
        lab.delete("job")
        wait_until(lambda: lab.events("job", "MigReclaimBlocked"), "told")
        assert lab.placements() == [(2, 1)], "the agent does not fight"
        (left,) = wait_until(
            lambda: decode_blocked(lab.node_annotation(keys.NODE_MIG_BLOCKED) or ""), "taken"
        )
        assert is_reclaiming(left.reason)
        assert told in left.reason
    with lab.agent() as agent:
        assert (lab.placements(), lab.node_annotation(keys.NODE_MIG_OWNER)) == ([(2, 1)], told)
        lab.delete("manager")
        wait_until(lambda: lab.placements() == lab.journal() == [], "reclaimed")
        wait_until(lambda: lab.node_annotation(keys.NODE_MIG_OWNER) is None, "published")
        wait_until(lambda: problem(agent) == 0, "shown")


def test_a_container_whose_instance_exists_is_answered_again(lab: Lab) -> None:
    with lab.agent():
        run(lab, "job", 2)
        lab.set_status("job", "Pending")
        lab.client.patch(
            "/api/v1/namespaces/default/pods/job/status", {"status": {"containerStatuses": None}}
        )
        label(lab, **{CONFIG: "all-1g.5gb"})
        lab.kubelet.allocate(lab.ids()[0])
        assert lab.placements() == [(2, 1)]


def test_a_sign_that_comes_while_allocate_waits_for_the_card_is_seen(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "NODE_FRESH_SECONDS", 0.0)
    said: list[Any] = []

    def allocate() -> None:
        with pytest.raises(grpc.RpcError) as caught:
            lab.kubelet.allocate(lab.ids()[0])
        said.append(caught.value.details())

    with lab.agent() as agent:
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        call = threading.Thread(target=allocate)
        locks = GpuLocks(lab.folder / "state/locks")
        with locks.hold(lab.gpus[0], Deadline(5)):
            call.start()
            wait_until(lambda: agent._session and agent._session._allocator.serving, "it waits")
            label(lab, **{CONFIG: "all-1g.5gb"})
        call.join(10)
        assert CONFIG in said[0]
        assert lab.placements() == []


def test_what_a_reboot_took_is_made_anew_when_the_sign_has_gone(lab: Lab) -> None:
    with lab.agent():
        run(lab, "job", 2)
    lab.hardware.reboot()
    label(lab, **{CONFIG: "all-disabled"})
    with lab.agent(HAMI_DISCOVERY_SECONDS="0.2"):
        wait_until(lambda: lab.events("job", "MigInstanceLost"), "told")
        assert lab.placements() == []
        label(lab, **{CONFIG: None})
        wait_until(lambda: lab.placements() == [(2, 1)], "made anew")
        wait_until(lambda: lab.events("job", "MigInstanceRestored"), "told")


def test_what_cannot_be_read_is_no_permission(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = connect(NODE, Path(lab.environment["HAMI_KUBECONFIG"]), 2.0)
    heard: list[object] = []
    guarded = Guard(cluster, heard.append)
    guarded.check()
    lab.server.faults.answer(500, RequestMatch(verb="get", resource="nodes"), times=None)
    guarded.check()  # as fresh as it needs to be: nothing is asked
    monkeypatch.setattr(guard, "NODE_FRESH_SECONDS", 0.0)
    with pytest.raises(OwnerUnknown, match="nothing is made or destroyed"):
        guarded.check()
    lab.server.faults.clear()
    label(lab, **{CONFIG: "all-1g.5gb"})
    with pytest.raises(OtherOwner, match="then remove the label"):
        guarded.check()
    label(lab, **{CONFIG: None, "nvidia.com/mig.config.state": "failed"})
    guarded.check()
    assert [sign is None for sign in heard] == [False, True]
    cluster.close()


def test_a_late_answer_does_not_cover_a_newer_one() -> None:
    now = [0.0]
    answers = iter(["first", "second"])

    def slow() -> str:
        answer = next(answers)
        if answer == "first":
            now[0] = 1.0
            assert latest.read() == "second"
        return answer

    latest = Latest(slow, lambda: now[0])
    assert latest.read() == "first"
    assert latest.within(0) == "second"
