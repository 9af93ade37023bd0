"""GPUs, profiles and capacity as the driver reports them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hami_web.core.placement import Placement
from node_agent.nvml.codes import NvmlCode
from node_agent.nvml.driver import PynvmlDriver
from node_agent.nvml.ports import DriverNotFound, DriverNotSupported
from node_agent.nvml.simulated import GpuSpec, gpu_models


def profile_named(driver, gpu, name):
    return next(each for each in driver.profiles(gpu) if each.name == name)


def test_a_gpu_is_described_by_its_facts(driver, gpu):
    (found,) = driver.gpus()
    assert (found.uuid, found.index, found.minor) == (gpu, 0, 0)
    assert (found.name, found.memory_mib) == ("NVIDIA A100-SXM4-40GB", 40960)
    assert (found.architecture, found.pci_bus_id) == (7, "00000000:10:00.0")
    assert found.mig_active


def test_a_gpu_that_cannot_do_mig_has_no_mode(make_node):
    make_node("l40s", "a30")
    with PynvmlDriver() as driver:
        plain, capable = driver.gpus()
    assert (plain.mig_capable, plain.mig_active) == (False, False)
    assert (capable.mig_capable, capable.mig_active) == (True, True)


def test_a_gpu_that_cannot_do_mig_has_no_profiles_and_no_instances(make_node):
    uuid = make_node("l40s").gpu_uuids()[0]
    with PynvmlDriver() as driver:
        assert driver.profiles(uuid) == ()
        assert driver.instances(uuid) == ()


def test_one_gpu_is_read_like_all_of_them(driver, gpu):
    assert driver.gpu(gpu) == driver.gpus()[0]


def test_an_unknown_gpu_is_not_found(driver):
    with pytest.raises(DriverNotFound) as caught:
        driver.gpu("GPU-00000000-0000-5000-8000-000000000000")
    assert caught.value.code == NvmlCode.NOT_FOUND


def test_a_lost_gpu_is_left_out_and_named_by_index(make_node):
    node = make_node("a100-sxm4-40gb", "a30", "h100-sxm5-80gb")
    with PynvmlDriver() as driver:
        node.lose_gpu(1)
        assert [each.index for each in driver.gpus()] == [0, 2]
        assert driver.lost_indexes() == (1,)


def test_an_index_may_mean_another_gpu_after_a_reboot(make_node):
    node = make_node("a100-sxm4-40gb", "a30")
    first, second = node.gpu_uuids()
    node.reboot(index_order=[1, 0])
    with PynvmlDriver() as driver:
        assert driver.gpu(first).index == 1
        assert driver.gpu(second).index == 0


@pytest.mark.parametrize("model", [each for each in gpu_models() if gpu_models()[each].profiles])
def test_profiles_equal_the_published_figures(make_node, model):
    uuid = make_node(model).gpu_uuids()[0]
    with PynvmlDriver() as driver:
        found = {
            each.profile_id: (
                each.name,
                each.enum,
                each.memory_mib,
                each.compute_slices,
                each.multiprocessors,
                each.instance_count,
                each.engines,
                [(one.start, one.size) for one in each.placements],
            )
            for each in driver.profiles(uuid)
        }
    assert found == {
        each.profile_id: (
            each.name,
            each.enum,
            each.memory_mib,
            each.compute_slices,
            each.multiprocessors,
            each.instance_count,
            each.engines,
            [(start, each.size) for start in each.starts],
        )
        for each in gpu_models()[model].profiles
    }


def test_the_attribute_of_a_profile_is_its_suffix(make_node):
    uuid = make_node("rtx-pro-6000-se").gpu_uuids()[0]
    with PynvmlDriver() as driver:
        attributes = {each.name: each.attribute for each in driver.profiles(uuid)}
    assert attributes["1g.24gb"] == ""
    assert attributes["1g.24gb+me"] == "+me"
    assert attributes["1g.24gb+me.all"] == "+me.all"
    assert attributes["2g.48gb+gfx"] == "+gfx"
    assert attributes["2g.48gb-me"] == "-me"


@pytest.mark.parametrize("model", [each for each in gpu_models() if gpu_models()[each].profiles])
def test_an_old_driver_without_names_gives_the_same_profiles(make_node, model):
    node = make_node(model)
    uuid = node.gpu_uuids()[0]
    with PynvmlDriver() as driver:
        expected = driver.profiles(uuid)
        node.set_options(hidden_symbols=["nvmlDeviceGetGpuInstanceProfileInfoV"])
        assert driver.profiles(uuid) == expected


def test_profiles_can_be_read_with_mig_off(make_node):
    uuid = make_node(GpuSpec("h100-sxm5-80gb", mig=False)).gpu_uuids()[0]
    with PynvmlDriver() as driver:
        assert "1g.10gb" in {each.name for each in driver.profiles(uuid)}
        assert driver.instances(uuid) == ()


def test_a_driver_that_hides_profiles_with_mig_off_gives_none(make_node):
    node = make_node(GpuSpec("a100-sxm4-40gb", mig=False))
    node.set_options(profile_info_needs_mig=True)
    with PynvmlDriver() as driver:
        assert driver.profiles(node.gpu_uuids()[0]) == ()


def test_the_same_name_means_other_profiles_on_other_models(make_node):
    small, large = make_node("a100-sxm4-40gb", "a100-sxm4-80gb").gpu_uuids()
    with PynvmlDriver() as driver:
        assert profile_named(driver, small, "1g.10gb").profile_id == 15
        assert profile_named(driver, large, "1g.10gb").profile_id == 19


def test_remaining_capacity_follows_the_hardware_listing(driver, gpu):
    """Figures of a published A100 listing: 3g at 0, then 2g at 4, then 1g at 6."""
    order = (19, 20, 15, 14, 9, 5, 0)

    def capacity():
        return [driver.remaining_capacity(gpu, each) for each in order]

    assert capacity() == [7, 1, 4, 3, 2, 1, 1]
    driver.create_gpu_instance(gpu, 9, Placement(0, 4))
    assert capacity() == [3, 1, 2, 1, 1, 0, 0]
    driver.create_gpu_instance(gpu, 14, Placement(4, 2))
    assert capacity() == [1, 1, 1, 0, 0, 0, 0]
    driver.create_gpu_instance(gpu, 19, Placement(6, 1))
    assert capacity() == [0] * 7


def test_remaining_capacity_needs_mig(make_node):
    uuid = make_node(GpuSpec("a30", mig=False)).gpu_uuids()[0]
    with PynvmlDriver() as driver, pytest.raises(DriverNotSupported):
        driver.remaining_capacity(uuid, 14)


def test_without_privilege_the_largest_profile_stands_for_the_memory(node, driver, gpu):
    node.set_options(permission="user")
    assert driver.gpu(gpu).memory_mib == 40320


def test_of_several_numbers_with_one_name_and_size_the_lowest_counts(
    node, driver, gpu, monkeypatch
):
    """Its instances are listed all the same, whichever number made them."""
    model = gpu_models()["a100-sxm4-40gb"]
    revision = replace(model.profile(14), enum=8, profile_id=99)
    changed = replace(model, profiles=(revision, *model.profiles))
    monkeypatch.setitem(gpu_models(), model.key, changed)
    monkeypatch.setitem(gpu_models("published"), model.key, changed)
    assert profile_named(driver, gpu, "2g.10gb").profile_id == 14
    assert 99 not in {each.profile_id for each in driver.profiles(gpu)}
    driver.create_gpu_instance(gpu, 99, Placement(0, 2))
    assert [each.profile_id for each in driver.instances(gpu)] == [99]


def test_a_gpu_that_reports_no_memory_shows_that_of_its_largest_profile(node, driver, gpu):
    node.fail("nvmlDeviceGetMemoryInfo", NvmlCode.NOT_SUPPORTED)
    assert driver.gpu(gpu).memory_mib == 40320


def test_a_listing_refused_with_the_mode_on_is_an_error_and_not_empty(node, driver, gpu):
    node.fail("nvmlDeviceGetGpuInstances", NvmlCode.NOT_SUPPORTED, times=-1)
    with pytest.raises(DriverNotSupported):
        driver.instances(gpu)


def test_a_mode_that_goes_off_while_instances_are_read_leaves_none(node, driver, gpu):
    node.fail("nvmlDeviceGetGpuInstances", NvmlCode.NOT_SUPPORTED, times=-1)
    # The first look at the mode finds it on, the second one does not.
    node.fail("nvmlDeviceGetMigMode", NvmlCode.NOT_SUPPORTED, times=-1, skip=1)
    assert driver.instances(gpu) == ()
