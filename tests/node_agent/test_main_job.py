"""The main job on one node: offer, allocate, record, reclaim."""

from __future__ import annotations

import pytest

from hami_web.core import annotations as keys
from hami_web.core.registration import decode_registration
from tests.node_agent.lab import Lab, wait_until


def test_a_node_offers_what_nvml_and_the_allowlist_allow(lab: Lab) -> None:
    with lab.agent():
        text = wait_until(lambda: lab.node_annotation(keys.NODE_REGISTER), "published")
        gpu = decode_registration(text).capability.gpus[0]
        names = [profile.name for profile in gpu.profiles]
        assert names == ["1g.5gb", "1g.5gb+me", "2g.10gb", "3g.20gb", "7g.40gb"]
        assert [p.core_percent for p in gpu.plain_profiles] == [15, 29, 43, 100]
        assert lab.kubelet.devices == tuple(f"{gpu.uuid}-{n}" for n in range(gpu.count))


def test_allocate_makes_the_reserved_instance_and_records_it(lab: Lab) -> None:
    with lab.agent():
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        env = lab.kubelet.allocate(lab.ids()[0])
        (reservation,) = lab.reservations("job")
        assert reservation.identity is not None
        assert env == {"NVIDIA_VISIBLE_DEVICES": reservation.identity.mig_uuid}
        assert lab.placements() == [(6, 1)]
        assert lab.annotations("job")[keys.POD_BIND_PHASE] == "success"
        assert lab.pod("job")["metadata"]["labels"] == {keys.POD_NODE: "gpu-n1"}
        assert lab.node_annotation(keys.NODE_LOCK) is None


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
def test_the_instance_goes_within_a_second_of_the_end_of_its_pod(lab: Lab, end: str) -> None:
    with lab.agent(HAMI_RECLAIM_SECONDS="600"):
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        lab.kubelet.allocate(lab.ids()[0])
        lab.set_status("job", "Running", "running")
        lab.set_status("job", end, "terminated")
        wait_until(lambda: lab.placements() == [], "reclaimed", 1.0)


def test_the_instance_goes_when_its_pod_is_deleted(lab: Lab) -> None:
    with lab.agent(HAMI_RECLAIM_SECONDS="600"):
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        lab.kubelet.allocate(lab.ids()[0])
        lab.delete("job")
        wait_until(lambda: lab.placements() == [], "reclaimed", 1.0)


def test_a_deleting_pod_keeps_its_instance_until_its_containers_end(lab: Lab) -> None:
    with lab.agent():
        lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        lab.kubelet.allocate(lab.ids()[0])
        lab.set_status("job", "Running", "running")
        lab.delete("job", grace=300)
        lab.reserve("next", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids(2)[1])
        assert lab.placements() == [(2, 2), (6, 1)]
        lab.set_status("job", "Running", "terminated")
        wait_until(lambda: lab.placements() == [(6, 1)], "reclaimed")


def test_two_devices_of_one_container_come_in_device_order(lab: Lab) -> None:
    with lab.agent():
        lab.reserve("job", [(0, "3g.20gb", 4, 4), (0, "1g.5gb", 0, 1)])
        env = lab.kubelet.allocate(*lab.ids(2))
        uuids = [r.identity and r.identity.mig_uuid for r in lab.reservations("job")]
        assert env["NVIDIA_VISIBLE_DEVICES"] == ",".join(str(uuid) for uuid in uuids)
        assert lab.placements() == [(0, 1), (4, 4)]


def test_containers_are_served_in_order_and_the_lock_stays_until_the_last(lab: Lab) -> None:
    with lab.agent():
        lab.reserve("job", [(0, "1g.5gb", 0, 1)], [], [(0, "2g.10gb", 2, 2)])
        lab.kubelet.allocate(lab.ids()[0])
        assert lab.placements() == [(0, 1)]
        assert lab.annotations("job")[keys.POD_BIND_PHASE] == "allocating"
        assert lab.node_annotation(keys.NODE_LOCK)
        lab.kubelet.allocate(lab.ids(2)[1])
        assert lab.placements() == [(0, 1), (2, 2)]
        assert lab.annotations("job")[keys.POD_BIND_PHASE] == "success"
        assert lab.node_annotation(keys.NODE_LOCK) is None


def test_seven_small_pods_fill_a_gpu(lab: Lab) -> None:
    with lab.agent():
        for start in range(7):
            lab.reserve(f"job-{start}", [(0, "1g.5gb", start, 1)])
            lab.kubelet.allocate(lab.ids(7)[start])
        assert lab.placements() == [(start, 1) for start in range(7)]
        for start in range(7):
            lab.delete(f"job-{start}")
        wait_until(lambda: lab.journal() == [], "all reclaimed")
        assert lab.placements() == []
