"""What people are told: events on Pods, and the node's condition."""

from __future__ import annotations

import re
from typing import Any

import grpc
import pytest

from hami_web.simulator.faults import RequestMatch
from node_agent import reclaimer, steps
from node_agent.condition import CONDITION
from node_agent.errors import ClusterError
from node_agent.metrics import AgentMetrics
from node_agent.podevents import PodEvents, PodReference, Reason
from tests.node_agent.lab import Lab, wait_until

POD = PodReference("default", "job", "uid")


def condition(lab: Lab) -> dict[str, Any]:
    found = lab.node().get("status", {}).get("conditions") or []
    return next((item for item in found if item["type"] == CONDITION), {})


def test_a_failed_allocation_is_told_on_its_pod(lab: Lab) -> None:
    with lab.agent():
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.hardware.fail("nvmlDeviceCreateGpuInstanceWithPlacement", 4)
        with pytest.raises(grpc.RpcError):
            lab.kubelet.allocate(lab.ids()[0])
        (event,) = wait_until(lambda: lab.events("job", "MigAllocationFailed"), "told")
        assert "no permission" in event["message"]
        assert (event["type"], event["reportingComponent"]) == ("Warning", "hami.io/node-agent")


def test_a_slow_allocation_is_told_on_its_pod(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "SLOW_SECONDS", 0.0)
    with lab.agent():
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
        (event,) = wait_until(lambda: lab.events("job", "MigAllocationSlow"), "told")
        said = r"Allocate of 1 MIG device\(s\) took .+ s: making .+, delivering .+, recording .+ s"
        assert re.fullmatch(said, event["message"])


def test_a_slow_reclaim_is_told_on_its_pod(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reclaimer, "SLOW_SECONDS", 0.0)
    with lab.agent():
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
        lab.set_status("job", "Succeeded", "terminated")
        (event,) = wait_until(lambda: lab.events("job", "MigReclaimSlow"), "told")
        assert event["message"].startswith("destroying 1g.5gb at 6:1 of GPU-")
        assert event["type"] == "Normal"


def test_a_blocked_reclaim_is_told_once(lab: Lab) -> None:
    with lab.agent(HAMI_RECLAIM_SECONDS="0.1"):
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
        gi = lab.hardware.gpu(0).instances[0].gi_id
        process = lab.hardware.attach(0, gi, 0)
        lab.set_status("job", "Succeeded", "terminated")
        wait_until(lambda: lab.events("job", "MigReclaimBlocked"), "told")
        refused = lambda: lab.journal()[0]["state"]  # noqa: E731
        wait_until(lambda: refused() == "reclaiming", "refused")
        lab.hardware.detach(process)
        wait_until(lambda: lab.journal() == [], "reclaimed")
        assert len(lab.events("job", "MigReclaimBlocked")) == 1


def test_an_instance_that_is_gone_at_the_start_is_told_on_its_pod(lab: Lab) -> None:
    with lab.agent():
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
    lab.hardware.destroy_instance(0, lab.hardware.gpu(0).instances[0].gi_id)
    with lab.starting_agent():
        events = wait_until(lambda: lab.events("job", "MigInstanceLost"), "told")
        assert "the instance no longer exists" in events[0]["message"]


def test_an_event_that_is_refused_disturbs_nothing(lab: Lab) -> None:
    lab.server.faults.answer(403, RequestMatch(verb="create", resource="events"), times=None)
    with lab.agent() as agent:
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.hardware.fail("nvmlDeviceCreateGpuInstanceWithPlacement", 4)
        with pytest.raises(grpc.RpcError):
            lab.kubelet.allocate(lab.ids()[0])
        failed = agent.metrics.events.labels("failed")
        wait_until(lambda: failed._value.get() == 1, "counted")


class Silent:
    """An API server that answers nobody."""

    def __init__(self) -> None:
        self.asked = 0

    def create(self, path: str, document: object) -> None:
        self.asked += 1
        raise ClusterError(0, "no answer")


def test_a_full_queue_and_an_api_server_that_is_away_do_not_delay_the_end() -> None:
    api = Silent()
    events = PodEvents(api, "n", AgentMetrics())  # type: ignore[arg-type]
    for number in range(300):
        events.tell(POD, Reason.GPU_ERROR, str(number))
    events.end()
    events.run()
    assert api.asked == 1


def test_what_is_queued_at_the_end_is_still_written(lab: Lab) -> None:
    with lab.agent() as agent:
        agent._events.tell(POD, Reason.GPU_ERROR, "late")
    assert lab.events("job", "GpuError")


def test_a_full_queue_drops_events_and_counts_them() -> None:
    metrics = AgentMetrics()
    events = PodEvents(Silent(), "n", metrics)  # type: ignore[arg-type]
    for number in range(300):
        events.tell(POD, Reason.GPU_ERROR, str(number))
    assert metrics.events.labels("dropped")._value.get() == 300 - 256


def test_a_repetition_is_not_told_for_five_minutes() -> None:
    now = [0.0]
    events = PodEvents(Silent(), "n", AgentMetrics(), clock=lambda: now[0])  # type: ignore[arg-type]
    for moment in (0.0, 299.0, 301.0):
        now[0] = moment
        events.tell(POD, Reason.GPU_ERROR, "same")
    assert events._waiting.qsize() == 2


def test_the_condition_says_that_the_node_works_and_when_nobody_looks_after_it(lab: Lab) -> None:
    with lab.agent():
        wait_until(lambda: condition(lab).get("status") == "True", "true")
        assert condition(lab)["reason"] == "AllGpusOffered"
        since = condition(lab)["lastTransitionTime"]
        assert since
    assert (condition(lab)["status"], condition(lab)["reason"]) == ("Unknown", "AgentStopped")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"driver": "not_loaded"}, "NoDriver"),
        ({"driver": "library_missing"}, "NoDriver"),
        ({"driver": "mismatch"}, "NoDriver"),
        ({"permission": "user"}, "NoPermission"),
    ],
)
def test_the_condition_names_the_cause(lab: Lab, options: dict[str, str], reason: str) -> None:
    lab.hardware.set_options(**options)
    with lab.starting_agent() as agent:
        wait_until(lambda: condition(lab).get("reason") == reason, f"said: {condition(lab)}")
        assert condition(lab)["status"] == "False"
        assert condition(lab)["message"]
        assert agent.metrics.problems.labels(reason)._value.get() == 1


def test_one_bad_gpu_is_named_while_the_node_works(two_gpus: Lab) -> None:
    lab = two_gpus
    with lab.agent(HAMI_EXCLUDED_GPUS="1"):
        wait_until(lambda: condition(lab).get("reason") == "SomeGpusNotOffered", "said")
        assert condition(lab)["status"] == "True"
        assert lab.gpus[1] in condition(lab)["message"]


def test_a_condition_of_somebody_else_stays(lab: Lab) -> None:
    other = {"type": "Ready", "status": "True"}
    lab.client.patch("/api/v1/nodes/gpu-n1/status", {"status": {"conditions": [other]}})
    with lab.agent():
        wait_until(lambda: condition(lab), "written")
        assert other in lab.node()["status"]["conditions"]
