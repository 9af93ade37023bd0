"""A Pod whose annotations are altered while its instance lives: the node tells of the instance."""

from __future__ import annotations

import pytest

from hami_web.core import annotations as keys
from hami_web.core.blocked import ALTERED, FOREIGN, BlockedInterval, decode_blocked
from hami_web.core.placement import Placement
from node_agent.nvml.ports import LiveInstance
from node_agent.ownership import InstanceRecord, InstanceSpec, Owner, RecordState
from node_agent.publisher import blocked_intervals
from tests.node_agent.lab import Lab, wait_until
from tests.node_agent.test_trust import key_file, sign

QUICK = {"HAMI_DISCOVERY_SECONDS": "0.2", "HAMI_RECLAIM_SECONDS": "0.2"}


def blocked(lab: Lab) -> tuple[BlockedInterval, ...]:
    return decode_blocked(lab.node_annotation(keys.NODE_MIG_BLOCKED) or "")


def altered(lab: Lab) -> tuple[BlockedInterval, ...]:
    return (BlockedInterval(lab.gpus[0], Placement(6, 1), ALTERED),)


def annotation_writes(lab: Lab) -> int:
    return sum((entry.verb, entry.resource) == ("patch", "nodes") for entry in lab.server.audit)


def realize(lab: Lab) -> str:
    uid = lab.reserve("job", [(0, "1g.5gb", 6, 1)])
    sign(lab, uid)
    lab.kubelet.allocate(lab.ids()[0])
    lab.set_status("job", "Running", "running")
    return lab.annotations("job")[keys.POD_MIG_ALLOCATIONS]


@pytest.mark.parametrize(
    "change",
    [
        {keys.POD_MIG_ALLOCATIONS: None},
        {keys.POD_MIG_ALLOCATIONS: "[{"},
        {keys.POD_MIG_ALLOCATIONS: "[]"},
        {keys.POD_MIG_SIGNATURE: None},
        {keys.POD_MIG_SIGNATURE: "v1.k1.0"},
    ],
)
def test_an_instance_whose_pod_no_longer_tells_of_it_is_published_until_it_does(
    lab: Lab, change: dict[str, str | None]
) -> None:
    with lab.agent(**key_file(lab), **QUICK):
        text = realize(lab)
        signature = lab.annotations("job")[keys.POD_MIG_SIGNATURE]
        assert blocked(lab) == ()
        lab.annotate("job", change)
        wait_until(lambda: blocked(lab) == altered(lab), "published")
        assert lab.placements() == [(6, 1)]
        lab.annotate("job", {keys.POD_MIG_ALLOCATIONS: text, keys.POD_MIG_SIGNATURE: signature})
        wait_until(lambda: blocked(lab) == (), "no longer published")


def test_it_is_still_published_by_an_agent_that_starts_anew(lab: Lab) -> None:
    with lab.agent(**key_file(lab), **QUICK):
        realize(lab)
        lab.annotate("job", {keys.POD_MIG_ALLOCATIONS: None})
        wait_until(lambda: blocked(lab) == altered(lab), "published")
    before = annotation_writes(lab)
    with lab.agent(**key_file(lab), **QUICK):
        wait_until(lambda: lab.kubelet.devices, "it serves again")
        reads = len(lab.server.audit)
        wait_until(lambda: len(lab.server.audit) > reads + 10, "several passes")
        assert annotation_writes(lab) == before
    assert blocked(lab) == altered(lab)


def test_without_keys_a_reservation_that_is_taken_off_is_published_too(lab: Lab) -> None:
    with lab.agent(**QUICK):
        realize(lab)
        lab.annotate("job", {keys.POD_MIG_SIGNATURE: None})
        lab.annotate("job", {keys.POD_MIG_ALLOCATIONS: None})
        wait_until(lambda: blocked(lab) == altered(lab), "published")


def test_only_an_agent_that_wants_signatures_says_that_it_verifies(lab: Lab) -> None:
    def marker() -> str | None:
        return lab.node_annotation(keys.NODE_MIG_VERIFIED)

    with lab.agent(**key_file(lab), **QUICK):
        wait_until(lambda: marker() == "true", "said")
    with lab.agent(**key_file(lab), HAMI_ACCEPT_UNSIGNED="true", **QUICK):
        wait_until(lambda: marker() is None, "taken back")


def test_blocked_are_foreign_instances_refused_destroys_and_altered_reservations() -> None:
    def record(start: int, state: RecordState, reason: str = "") -> InstanceRecord:
        spec = InstanceSpec("GPU-a", "1g.5gb", Placement(start, 1))
        owner = Owner(f"uid-{start}", 0, 0)
        return InstanceRecord(owner, "ns", "pod", spec, 19, state, None, (), 1.0, reason)

    refused = record(1, RecordState.RECLAIMING, "in use")
    unknown = record(2, RecordState.REALIZED)
    explained = record(3, RecordState.REALIZED)
    absent = record(4, RecordState.REALIZED)
    live = [LiveInstance("GPU-a", start, 19, Placement(start, 1), ()) for start in range(4)]

    found = blocked_intervals(live, (refused, unknown, explained, absent), (unknown, absent))

    assert [(item.placement.start, item.reason) for item in found] == [
        (0, FOREIGN),
        (1, "reclaiming: in use"),
        (2, ALTERED),
    ]
