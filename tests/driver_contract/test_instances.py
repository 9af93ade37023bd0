"""GPU instances and compute instances: create, list, destroy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hami_web.core.placement import Placement
from node_agent.nvml.driver import PynvmlDriver
from node_agent.nvml.ports import (
    DriverError,
    DriverInsufficientResources,
    DriverInUse,
    DriverInvalidArgument,
    DriverNotFound,
    DriverNotSupported,
)
from node_agent.nvml.simulated import GpuSpec, gpu_models, mutations, topology

CAPABLE = [each for each in gpu_models() if gpu_models()[each].profiles]


def realize(driver, gpu, profile_id, start, size):
    made = driver.create_gpu_instance(gpu, profile_id, Placement(start, size))
    return made.gpu_instance_id, driver.create_compute_instance(gpu, made.gpu_instance_id)


@pytest.mark.parametrize("id_map", ["identity", "swapped"])
@pytest.mark.parametrize("model", CAPABLE)
def test_every_placement_of_every_profile_can_be_created_and_destroyed(make_node, model, id_map):
    uuid = make_node(GpuSpec(model, id_map=id_map)).gpu_uuids()[0]
    with PynvmlDriver() as driver:
        for profile in driver.profiles(uuid):
            for placement in profile.placements:
                made = driver.create_gpu_instance(uuid, profile.profile_id, placement)
                compute = driver.create_compute_instance(uuid, made.gpu_instance_id)
                (live,) = driver.instances(uuid)
                assert (live.profile_id, live.placement) == (profile.profile_id, placement)
                assert live.compute_instances == (compute,)
                driver.destroy_compute_instance(uuid, live.gpu_instance_id, 0)
                driver.destroy_gpu_instance(uuid, live.gpu_instance_id)
                assert driver.instances(uuid) == ()


def test_a_gpu_instance_without_compute_instance_is_listed(driver, gpu):
    made = driver.create_gpu_instance(gpu, 9, Placement(4, 4))
    assert made.compute_instances == ()
    assert driver.instances(gpu) == (made,)


def test_instances_are_listed_by_placement_over_all_profiles(driver, gpu):
    for profile_id, start, size in ((19, 6, 1), (9, 0, 4), (14, 4, 2)):
        realize(driver, gpu, profile_id, start, size)
    assert [each.placement.start for each in driver.instances(gpu)] == [0, 4, 6]


def test_a_taken_placement_is_refused_for_lack_of_resources(driver, gpu):
    driver.create_gpu_instance(gpu, 14, Placement(2, 2))
    for profile_id, start, size in ((14, 2, 2), (19, 3, 1), (9, 0, 4), (0, 0, 8)):
        with pytest.raises(DriverInsufficientResources):
            driver.create_gpu_instance(gpu, profile_id, Placement(start, size))
    assert len(driver.instances(gpu)) == 1


@pytest.mark.parametrize(("start", "size"), [(1, 2), (6, 2), (0, 1), (0, 4), (8, 2)])
def test_an_illegal_placement_is_an_invalid_argument(driver, gpu, start, size):
    with pytest.raises(DriverInvalidArgument):
        driver.create_gpu_instance(gpu, 14, Placement(start, size))


def test_an_unknown_profile_is_an_invalid_argument(driver, gpu):
    with pytest.raises(DriverInvalidArgument):
        driver.create_gpu_instance(gpu, 77, Placement(0, 1))


def test_instances_need_mig(make_node):
    uuid = make_node(GpuSpec("a30", mig=False)).gpu_uuids()[0]
    with PynvmlDriver() as driver, pytest.raises(DriverNotSupported):
        driver.create_gpu_instance(uuid, 14, Placement(0, 1))


def test_a_vgpu_guest_makes_no_instances(make_node):
    uuid = make_node(GpuSpec("a30", vgpu_guest=True)).gpu_uuids()[0]
    with PynvmlDriver() as driver, pytest.raises(DriverNotSupported):
        driver.create_gpu_instance(uuid, 14, Placement(0, 1))


def test_one_profile_with_the_media_engines_fits_a_gpu(driver, gpu):
    driver.create_gpu_instance(gpu, 20, Placement(0, 1))
    with pytest.raises(DriverInsufficientResources):
        driver.create_gpu_instance(gpu, 20, Placement(1, 1))


def test_beside_all_media_engines_only_profiles_without_fit(make_node):
    uuid = make_node("rtx-pro-6000-se").gpu_uuids()[0]
    with PynvmlDriver() as driver:
        driver.create_gpu_instance(uuid, 65, Placement(0, 3))
        with pytest.raises(DriverInsufficientResources):
            driver.create_gpu_instance(uuid, 14, Placement(3, 3))
        driver.create_gpu_instance(uuid, 67, Placement(3, 3))


@pytest.mark.parametrize(
    ("model", "profile_id", "ci_profile"),
    [
        ("a100-sxm4-40gb", 15, 0),
        ("a100-sxm4-40gb", 14, 1),
        ("a100-sxm4-40gb", 9, 2),
        ("a100-sxm4-40gb", 5, 3),
        ("a100-sxm4-40gb", 0, 4),
        ("h100-sxm5-80gb", 15, 7),
        ("h100-sxm5-80gb", 19, 0),
        ("a30", 0, 3),
    ],
)
def test_the_compute_instance_spans_the_gpu_instance(make_node, model, profile_id, ci_profile):
    node = make_node(model)
    uuid = node.gpu_uuids()[0]
    with PynvmlDriver() as driver:
        profile = next(each for each in driver.profiles(uuid) if each.profile_id == profile_id)
        made = driver.create_gpu_instance(uuid, profile_id, profile.placements[-1])
        assert driver.create_compute_instance(uuid, made.gpu_instance_id).profile_id == ci_profile


def test_a_second_whole_compute_instance_does_not_fit(driver, gpu):
    gi_id, _ = realize(driver, gpu, 9, 0, 4)
    with pytest.raises(DriverInsufficientResources):
        driver.create_compute_instance(gpu, gi_id)


def test_a_gpu_instance_with_a_compute_instance_is_in_use(driver, gpu):
    gi_id, _ = realize(driver, gpu, 9, 0, 4)
    with pytest.raises(DriverInUse):
        driver.destroy_gpu_instance(gpu, gi_id)
    assert len(driver.instances(gpu)) == 1


def test_a_compute_instance_with_a_process_is_in_use_until_it_ends(node, driver, gpu):
    gi_id, compute = realize(driver, gpu, 14, 2, 2)
    pid = node.attach(gpu, gi_id, compute.compute_instance_id)
    with pytest.raises(DriverInUse):
        driver.destroy_compute_instance(gpu, gi_id, compute.compute_instance_id)
    node.detach(pid)
    driver.destroy_compute_instance(gpu, gi_id, compute.compute_instance_id)


def test_a_leaked_descriptor_holds_an_instance_without_a_visible_process(node, driver, gpu):
    gi_id, _ = realize(driver, gpu, 14, 2, 2)
    node.attach(gpu, gi_id, kind="leaked")
    assert driver.processes(gpu) == ()
    driver.destroy_compute_instance(gpu, gi_id, 0)
    with pytest.raises(DriverInUse):
        driver.destroy_gpu_instance(gpu, gi_id)


def test_the_first_instance_of_a_gpu_in_use_is_refused(node, driver, gpu):
    node.attach(gpu)
    with pytest.raises(DriverInUse):
        driver.create_gpu_instance(gpu, 19, Placement(0, 1))


def test_what_does_not_exist_is_not_found(driver, gpu):
    with pytest.raises(DriverNotFound):
        driver.destroy_gpu_instance(gpu, 7)
    with pytest.raises(DriverNotFound):
        driver.create_compute_instance(gpu, 7)
    made = driver.create_gpu_instance(gpu, 19, Placement(0, 1))
    with pytest.raises(DriverNotFound):
        driver.destroy_compute_instance(gpu, made.gpu_instance_id, 0)


def test_ids_follow_the_memory_span_in_two_maps(make_node):
    node = make_node("a100-sxm4-40gb", GpuSpec("a100-sxm4-40gb", id_map="swapped"))
    with PynvmlDriver() as driver:
        for uuid, expected in zip(node.gpu_uuids(), ([3, 4, 5], [5, 6, 3]), strict=True):
            found = [
                driver.create_gpu_instance(uuid, 14, Placement(start, 2)).gpu_instance_id
                for start in (0, 2, 4)
            ]
            assert found == expected


def test_a_recreated_instance_gets_its_uuid_again(driver, gpu):
    gi_id, first = realize(driver, gpu, 14, 4, 2)
    driver.destroy_compute_instance(gpu, gi_id, 0)
    driver.destroy_gpu_instance(gpu, gi_id)
    assert realize(driver, gpu, 14, 4, 2) == (gi_id, first)


def test_another_profile_at_the_same_id_gets_the_same_uuid(driver, gpu):
    gi_id, first = realize(driver, gpu, 14, 4, 2)
    driver.destroy_compute_instance(gpu, gi_id, 0)
    driver.destroy_gpu_instance(gpu, gi_id)
    other_id, second = realize(driver, gpu, 15, 4, 2)
    assert (other_id, second.mig_uuid) == (gi_id, first.mig_uuid)


def test_uuids_are_of_version_five_and_differ_between_gpus(make_node):
    node = make_node("a30", "a30")
    with PynvmlDriver() as driver:
        uuids = {realize(driver, each, 14, 0, 1)[1].mig_uuid for each in node.gpu_uuids()}
    assert len(uuids) == 2
    assert all(each.startswith("MIG-") and each[18] == "5" for each in uuids)


def test_uuids_can_be_random(node, driver, gpu):
    node.set_options(uuids="random")
    gi_id, first = realize(driver, gpu, 14, 4, 2)
    driver.destroy_compute_instance(gpu, gi_id, 0)
    driver.destroy_gpu_instance(gpu, gi_id)
    assert realize(driver, gpu, 14, 4, 2)[1].mig_uuid != first.mig_uuid


def test_an_old_driver_without_names_makes_the_same_compute_instance(make_node):
    node = make_node("h100-sxm5-80gb")
    node.set_options(
        hidden_symbols=[
            "nvmlDeviceGetGpuInstanceProfileInfoV",
            "nvmlGpuInstanceGetComputeInstanceProfileInfoV",
        ]
    )
    with PynvmlDriver() as driver:
        _, compute = realize(driver, node.gpu_uuids()[0], 15, 2, 2)
        assert compute.profile_id == 7
        assert driver.instances(node.gpu_uuids()[0])[0].compute_instances == (compute,)


def test_an_instance_that_the_driver_puts_elsewhere_is_taken_back(driver, gpu, monkeypatch):
    create = mutations.create_gpu_instance
    elsewhere = Placement(5, 1)
    monkeypatch.setattr(
        mutations,
        "create_gpu_instance",
        lambda node, gpu, profile_id, _placement: create(node, gpu, profile_id, elsewhere),
    )
    with pytest.raises(DriverError, match=r"asked for profile 19 at 2:1.* at 5:1"):
        driver.create_gpu_instance(gpu, 19, Placement(2, 1))
    assert driver.instances(gpu) == ()


def test_an_instance_made_between_listing_and_create_is_respected(node, driver, gpu):
    assert driver.instances(gpu) == ()
    node.create_instance(gpu, "1g.5gb", 2)
    with pytest.raises(DriverInsufficientResources):
        driver.create_gpu_instance(gpu, 14, Placement(2, 2))


def test_of_equally_large_compute_profiles_the_original_is_taken(driver, gpu, monkeypatch):
    offered = topology.compute_profiles

    def with_revision(model, profile):
        found = offered(model, profile)
        return (*found, replace(found[-1], profile_id=8))

    monkeypatch.setattr(topology, "compute_profiles", with_revision)
    assert realize(driver, gpu, 0, 0, 8)[1].profile_id == 4


def test_without_an_equally_large_compute_profile_the_largest_is_taken(driver, gpu, monkeypatch):
    offered = topology.compute_profiles
    monkeypatch.setattr(
        topology, "compute_profiles", lambda model, profile: offered(model, profile)[:-1]
    )
    assert realize(driver, gpu, 0, 0, 8)[1].profile_id == 3


def test_a_gpu_instance_that_offers_no_compute_profile_is_not_supported(driver, gpu, monkeypatch):
    made = driver.create_gpu_instance(gpu, 19, Placement(0, 1))
    monkeypatch.setattr(topology, "compute_profiles", lambda *_: ())
    with pytest.raises(DriverNotSupported, match="offers no compute instance profile"):
        driver.create_compute_instance(gpu, made.gpu_instance_id)
