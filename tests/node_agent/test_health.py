"""Errors of GPUs: their classes, whose they are, and how a GPU comes back."""

from __future__ import annotations

from typing import Any

import pytest

from hami_web.core import annotations as keys
from hami_web.core.registration import decode_registration
from node_agent import ailments as module
from node_agent.ailments import XidClass, classify
from tests.node_agent.lab import Lab, wait_until

APPLICATION, NEEDS_RESET, FATAL, OTHER = 31, 119, 79, 92


def healthy(lab: Lab) -> list[bool]:
    text = lab.node_annotation(keys.NODE_REGISTER) or "[]"
    return [gpu.healthy for gpu in decode_registration(text).capability.gpus]


def xids(agent: Any, kind: XidClass) -> float:
    return float(agent.metrics.xids.labels(kind.value)._value.get())


def started(lab: Lab) -> None:
    wait_until(lambda: healthy(lab) == [True] * len(lab.gpus), "published")


def report(lab: Lab, agent: Any, xid: int, *where: Any) -> None:
    """Report an error until the agent, whose watch may have begun just now, has it."""
    kind = classify(xid)
    before = xids(agent, kind)

    def seen() -> bool:
        if xids(agent, kind) == before:
            lab.hardware.xid(*(where or (0,))[:1], xid, *where[1:])
        return xids(agent, kind) > before

    wait_until(seen, f"Xid {xid} was seen")


@pytest.mark.parametrize(
    ("xid", "kind"),
    [
        *((xid, XidClass.APPLICATION) for xid in (13, 31, 43, 45, 68, 109)),
        (119, XidClass.NEEDS_RESET),
        (79, XidClass.FATAL),
        (92, XidClass.OTHER),
        (0, XidClass.OTHER),
        (999, XidClass.OTHER),
    ],
)
def test_every_xid_has_a_class(xid: int, kind: XidClass) -> None:
    assert classify(xid) is kind


def test_an_error_of_an_application_changes_no_gpu(lab: Lab) -> None:
    with lab.agent() as agent:
        report(lab, agent, APPLICATION)
        assert healthy(lab) == [True]
        assert len(lab.kubelet.devices) == 7


def test_an_ill_gpu_leaves_the_offer_and_returns_after_a_clean_probe(
    two_gpus: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = two_gpus
    monkeypatch.setattr(module, "_QUIET_SECONDS", 0.3)
    with lab.agent(HAMI_DISCOVERY_SECONDS="600") as agent:
        started(lab)
        lab.hardware.fail("nvmlDeviceGetComputeRunningProcesses_v3", 999, times=3)
        report(lab, agent, OTHER, 1)
        wait_until(lambda: healthy(lab) == [True, False], "published as unhealthy")
        wait_until(lambda: len(lab.kubelet.devices) == 7, "the kubelet offers one GPU")
        assert lab.kubelet.capacity == 14
        wait_until(lambda: healthy(lab) == [True, True], "recovered")
        wait_until(lambda: len(lab.kubelet.devices) == 14, "offered again")
        assert not lab.hardware.state().faults, "a probe that fails keeps the GPU out"


def test_a_gpu_that_keeps_falling_ill_stays_out(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_QUIET_SECONDS", 0.0)
    with lab.agent(HAMI_DISCOVERY_SECONDS="600") as agent:
        started(lab)
        for _round in range(module._FLAPS_MOST):
            report(lab, agent, OTHER)
            wait_until(lambda: not agent._session._ailments.of(lab.gpus[0]), "recovered")
        report(lab, agent, OTHER)
        wait_until(lambda: "times within an hour" in agent.problem(), "stays out")
    with lab.agent():
        wait_until(lambda: healthy(lab) == [True], "a new start looks anew")


@pytest.mark.parametrize("xid", [NEEDS_RESET, FATAL])
def test_a_gpu_that_needs_a_reset_stays_out(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, xid: int
) -> None:
    monkeypatch.setattr(module, "_QUIET_SECONDS", 0.0)
    with lab.agent(HAMI_DISCOVERY_SECONDS="0.1") as agent:
        started(lab)
        report(lab, agent, xid)
        wait_until(lambda: f"Xid {xid}" in agent.problem(), "out")
        report(lab, agent, OTHER)
        assert healthy(lab) == [False]
        lab.hardware.reload_driver()
        lab.hardware.set_mig_mode(0, enabled=True)
        wait_until(lambda: healthy(lab) == [True], "a new driver load looks anew", 20)


def test_an_error_of_one_instance_is_told_to_its_pod_only(lab: Lab) -> None:
    with lab.agent() as agent:
        for number, name in enumerate(("one", "other")):
            lab.reserve(name, [(0, "1g.5gb", number, 1)])
            lab.kubelet.allocate(lab.ids(2)[number])
        instance = next(i for i in lab.hardware.gpu(0).instances if i.start == 1)
        report(lab, agent, OTHER, 0, instance.gi_id, 0)
        event = wait_until(lambda: lab.events("other", "GpuError"), "told")[0]
        assert "Xid 92 (other) on 1g.5gb" in event["message"]
        assert lab.events("one", "GpuError") == []
        assert healthy(lab) == [True]


def test_an_error_of_the_whole_gpu_is_told_to_every_pod_on_it(two_gpus: Lab) -> None:
    lab = two_gpus
    with lab.agent() as agent:
        for index, name in enumerate(("here", "there")):
            lab.reserve(name, [(index, "1g.5gb", 0, 1)])
            lab.kubelet.allocate(lab.ids(gpu=index)[0])
        report(lab, agent, NEEDS_RESET, 0)
        wait_until(lambda: lab.events("here", "GpuError"), "told")
        assert lab.events("there", "GpuError") == []
        assert {"here", "there"} == {record["pod"] for record in lab.journal()}


def test_a_lost_card_keeps_its_reservations_and_the_other_card_works(two_gpus: Lab) -> None:
    lab = two_gpus
    with lab.agent(HAMI_DISCOVERY_SECONDS="600"):
        started(lab)
        lab.reserve("kept", [(0, "1g.5gb", 0, 1)])
        lab.kubelet.allocate(lab.ids()[0])
        lab.hardware.lose_gpu(0)
        wait_until(lambda: healthy(lab) == [False, True], "noticed at once", 5)
        lab.reserve("next", [(1, "1g.5gb", 0, 1)])
        lab.kubelet.allocate(lab.ids(gpu=1)[0])
        assert {"kept", "next"} == {record["pod"] for record in lab.journal()}
        lab.delete("next")
        wait_until(lambda: lab.placements(1) == [], "reclaimed")
        wait_until(lambda: [r["pod"] for r in lab.journal()] == ["kept"], "only that is forgotten")


def test_a_driver_without_events_costs_nothing_else(lab: Lab) -> None:
    lab.hardware.set_options(hidden_symbols=["nvmlEventSetWait_v2", "nvmlEventSetCreate"])
    with lab.agent():
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
