"""Allocate is sure or refuses: nothing is created for a Pod that cannot be known, or is wrong."""

from __future__ import annotations

from collections.abc import Callable

import grpc
import pytest

from hami_web.core import annotations as keys
from hami_web.simulator.faults import RequestMatch
from node_agent import errors
from node_agent.deviceplugin.errors import _STATUS, status_of, text_of
from node_agent.nvml import ports
from tests.node_agent.lab import Lab, wait_until

FAILED = grpc.StatusCode.FAILED_PRECONDITION
POD_PATCH = RequestMatch(verb="patch", resource="pods")


def refused(lab: Lab, *ids: str) -> tuple[grpc.StatusCode, str]:
    """The status and text of a refused Allocate."""
    with pytest.raises(grpc.RpcError) as caught:
        lab.kubelet.allocate(*(ids or lab.ids()))
    return caught.value.code(), caught.value.details()


def test_without_a_lock_nothing_is_allocated(lab: Lab) -> None:
    with lab.agent():
        lab.reserve("job", [(0, "1g.5gb", 6, 1)], lock=False)
        code, text = refused(lab)
        assert code is FAILED
        assert "no Pod holds the lock of node gpu-n1" in text
        assert lab.placements() == []
        assert lab.annotations("job")[keys.POD_BIND_PHASE] == "allocating"


def test_a_pod_that_bypassed_the_scheduler_gets_nothing_of_the_one_in_flight(lab: Lab) -> None:
    with lab.agent():
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        code, text = refused(lab, *lab.ids(2))
        assert code is FAILED
        assert "asks for 2 devices and Pod default/job, whose turn it is, waits for 1" in text
        assert lab.placements() == []
        assert lab.node_annotation(keys.NODE_LOCK)
        lab.kubelet.allocate(lab.ids()[0])
        assert lab.placements() == [(6, 1)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({keys.POD_BIND_PHASE: "success"}, "bind phase 'success', not allocating"),
        ({keys.POD_BIND_PHASE: None}, "bind phase '', not allocating"),
        ({keys.POD_NODE: "gpu-n2"}, "is reserved on 'gpu-n2', not on 'gpu-n1'"),
        ({keys.POD_DEVICES_TO_ALLOCATE: ";"}, "waits for 0"),
    ],
)
def test_a_pod_that_disagrees_is_refused_and_left_as_it_is(
    lab: Lab, change: dict[str, str | None], said: str
) -> None:
    with lab.agent():
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.annotate("job", change)
        before = lab.annotations("job")
        code, text = refused(lab)
        assert code is FAILED
        assert said in text
        assert lab.placements() == []
        assert lab.annotations("job") == before


def test_a_rival_that_bypassed_the_scheduler_makes_the_call_ambiguous(lab: Lab) -> None:
    with lab.agent():
        lab.create_pod("rival", 1)
        lab.bind("rival", {})
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        code, text = refused(lab)
        assert code is FAILED
        assert "Pod default/rival is on node gpu-n1 without a reservation" in text
        assert lab.placements() == []
        lab.set_status("rival", "Failed")
        lab.kubelet.allocate(lab.ids()[0])
        assert lab.placements() == [(6, 1)]


def test_a_pod_that_was_served_is_no_rival(lab: Lab) -> None:
    with lab.agent():
        for number in range(2):
            lab.reserve(f"job-{number}", [(0, "1g.5gb", number, 1)])
            lab.kubelet.allocate(lab.ids(2)[number])
        assert lab.placements() == [(0, 1), (1, 1)]


def test_a_failing_second_container_leads_to_the_reclaim_of_the_first(lab: Lab) -> None:
    with lab.agent(HAMI_RECLAIM_SECONDS="600"):
        lab.hardware.create_instance(0, "3g.20gb", 4)
        lab.reserve("job", [(0, "1g.5gb", 0, 1)], [(0, "3g.20gb", 4, 4)])
        lab.kubelet.allocate(lab.ids()[0])
        refused(lab, lab.ids(2)[1])
        lab.set_status("job", "Failed")
        wait_until(lambda: lab.placements() == [(4, 4)], "reclaimed without a deletion", 1.0)


def with_allocations(text: str) -> Callable[[Lab], None]:
    return lambda lab: lab.annotate(
        "job", {keys.POD_MIG_ALLOCATIONS: text.replace("GPU0", lab.gpus[0])}
    )


ENTRY = (
    '{"containerIndex":0,"deviceIndex":0,"gpuUUID":"GPU0","profile":"1g.5gb",'
    '"placement":{"start":6,"size":1}'
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not json", "a JSON array"),
        ("{}", "a JSON array"),
        ("[]", "has 0 MIG reservations, the kubelet asks for 1"),
        (f"[{ENTRY}}},{ENTRY}}}]", "each device once"),
        (f'[{ENTRY},"migUUID":"MIG-1"}}]', "all of migUUID, gpuInstanceID, computeInstanceID"),
        (f"[{ENTRY.replace('1g.5gb', '9g.90gb')}}}]", "profile 9g.90gb does not exist"),
        (f"[{ENTRY.replace('6', '7')}}}]", "placement 7:1 of 1g.5gb does not exist"),
        (f"[{ENTRY.replace('GPU0', 'GPU-0000')}}}]", "name different GPUs"),
        (f"[{ENTRY.replace(':6', ':-1')}}}]", "placement.start"),
        (f"[{ENTRY.replace('GPU0', '../../etc')}}}]", "name different GPUs"),
    ],
)
def test_a_bad_reservation_creates_nothing_and_gives_the_lock_back(
    lab: Lab, text: str, said: str
) -> None:
    with lab.agent():
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        with_allocations(text)(lab)
        code, details = refused(lab)
        assert code is FAILED
        assert said in details
        assert lab.placements() == []
        assert lab.annotations("job")[keys.POD_BIND_PHASE] == "failed"
        assert not lab.node_annotation(keys.NODE_LOCK)


def test_an_unknown_gpu_is_named(lab: Lab) -> None:
    with lab.agent():
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        changed = {
            key: text.replace(lab.gpus[0], "GPU-0000")
            for key, text in lab.annotations("job").items()
        }
        lab.annotate("job", dict(changed))
        assert "GPU GPU-0000 is not on this node" in refused(lab)[1]
        assert lab.placements() == []


def test_a_malformed_reservation_destroys_nothing(lab: Lab) -> None:
    with lab.agent(HAMI_RECLAIM_SECONDS="0.1") as agent:
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
        lab.reserve("bad", [(0, "1g.5gb", 5, 1)])
        lab.annotate("bad", {keys.POD_MIG_ALLOCATIONS: "not json"})
        lab.delete("job")
        skipped = agent.metrics.skipped.labels("malformed")
        start = skipped._value.get()
        wait_until(lambda: skipped._value.get() > start + 3, "passes under doubt")
        assert lab.placements() == [(6, 1)]
        lab.delete("bad")
        wait_until(lambda: lab.placements() == [], "reclaimed without doubt")


def test_a_failing_second_device_takes_the_first_one_back(lab: Lab) -> None:
    with lab.agent():
        lab.hardware.create_instance(0, "3g.20gb", 4)
        lab.reserve("job", [(0, "2g.10gb", 0, 2), (0, "3g.20gb", 4, 4)])
        code, text = refused(lab, *lab.ids(2))
        assert code is FAILED
        assert "is taken by GPU instance" in text
        assert lab.placements() == [(4, 4)]
        assert lab.journal() == []
        assert lab.annotations("job")[keys.POD_BIND_PHASE] == "failed"


def test_the_instance_of_a_live_owner_is_never_given_to_another(lab: Lab) -> None:
    with lab.agent():
        lab.reserve("first", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
        lab.reserve("second", [(0, "1g.5gb", 6, 1)])
        code, text = refused(lab, lab.ids(2)[1])
        assert code is FAILED
        assert "is held by Pod default/first" in text
        assert lab.placements() == [(6, 1)]


def test_the_instance_of_an_owner_that_is_over_is_reclaimed_first(lab: Lab) -> None:
    with lab.agent(HAMI_RECLAIM_SECONDS="600"):
        lab.reserve("first", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
        process = lab.hardware.attach(0, lab.hardware.gpu(0).instances[0].gi_id, 0)
        lab.set_status("first", "Succeeded", "terminated")
        lab.reserve("second", [(0, "1g.5gb", 6, 1)])
        assert "is in use by process" in refused(lab, lab.ids(2)[1])[1]
        lab.hardware.detach(process)
        lab.reserve("third", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids(3)[2])
        assert lab.journal()[0]["pod"] == "third"


def test_a_conflict_on_the_pod_is_merged(lab: Lab) -> None:
    with lab.agent():
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.server.faults.answer(409, POD_PATCH, times=2)
        lab.kubelet.allocate(lab.ids()[0])
        assert lab.reservations("job")[0].identity is not None


@pytest.mark.parametrize("kind", ["lose-answer", "drop", "truncate"])
def test_an_unclear_answer_is_settled_by_reading_the_pod(lab: Lab, kind: str) -> None:
    with lab.agent():
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.server.faults.order(kind, POD_PATCH)
        lab.kubelet.allocate(lab.ids()[0])
        assert lab.reservations("job")[0].identity is not None
        assert lab.placements() == [(6, 1)]


def test_an_annotation_that_cannot_be_written_takes_the_instance_back(lab: Lab) -> None:
    with lab.agent():
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.server.faults.answer(403, POD_PATCH)
        assert refused(lab)[0] is grpc.StatusCode.UNAVAILABLE
        assert lab.placements() == []
        assert lab.annotations("job")[keys.POD_BIND_PHASE] == "failed"


def test_a_repeated_call_gets_the_same_instances(lab: Lab) -> None:
    with lab.agent():
        lab.reserve("job", [(0, "2g.10gb", 0, 2), (0, "3g.20gb", 4, 4)])
        first = lab.kubelet.allocate(*lab.ids(2))
        again = lab.kubelet.allocate(*reversed(lab.ids(2)))
        assert first == again
        assert lab.placements() == [(0, 2), (4, 4)]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ports.DriverGpuLost(15, "nvmlX"), grpc.StatusCode.INTERNAL),
        (ports.DriverNoPermission(4, "nvmlX"), grpc.StatusCode.PERMISSION_DENIED),
        (errors.ClusterConflict(409, "changed"), grpc.StatusCode.UNAVAILABLE),
    ],
)
def test_an_error_has_the_status_of_its_nearest_class(
    error: Exception, status: grpc.StatusCode
) -> None:
    assert status_of(error) is status
    assert text_of(error)


def subclasses(kind: type[Exception]) -> list[type[Exception]]:
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in subclasses(child))]


@pytest.mark.parametrize(
    "kind", [*subclasses(errors.AgentError)[1:], *subclasses(ports.DriverError)]
)
def test_every_error_has_a_row_or_a_parent_with_one(kind: type[Exception]) -> None:
    assert any(parent in _STATUS for parent in kind.__mro__)
