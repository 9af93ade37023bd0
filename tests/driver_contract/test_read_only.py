"""The reading part of the contract, on the simulated library and on a real one where there is one.

Nothing is changed on the machine.
"""

from __future__ import annotations

import re

import pytest

from node_agent.nvml.driver import PynvmlDriver
from node_agent.nvml.ports import (
    DriverError,
    DriverNotSupported,
    DriverUnavailable,
    RecoveryAction,
)
from node_agent.nvml.simulated import GpuSpec

BUS_ID = re.compile(r"[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")
PROFILE_NAME = re.compile(r"\d+g\.\d+gb(\+me\.all|\+me|\+gfx|-me)?")


@pytest.fixture(params=["simulated", pytest.param("real", marks=pytest.mark.gpu)])
def reader(request, make_node):
    """A driver on a machine about which nothing is known."""
    if request.param == "simulated":
        node = make_node("a100-sxm4-40gb", "l40s", GpuSpec("h100-sxm5-80gb", mig=False))
        instance, _ = node.create_instance(0, "2g.10gb")
        node.attach(0, instance.gi_id, 0)
        node.create_instance(0, "1g.5gb", compute=False)
    try:
        driver = PynvmlDriver()
    except DriverUnavailable as error:
        pytest.skip(f"no NVML here: {error}")
    with driver:
        yield driver


@pytest.fixture
def capable(reader):
    """UUIDs of the GPUs that can do MIG."""
    found = [each.uuid for each in reader.gpus() if each.mig_capable]
    if not found:
        pytest.skip("no GPU here can do MIG")
    return found


def test_gpus_are_listed_by_index_with_their_facts(reader):
    gpus = reader.gpus()
    assert [each.index for each in gpus] == sorted(each.index for each in gpus)
    for each in gpus:
        assert each.uuid.startswith("GPU-")
        assert BUS_ID.fullmatch(each.pci_bus_id)
        assert each.memory_mib > 1024
        assert reader.gpu(each.uuid) == each


def test_what_the_driver_asks_for_is_an_action_or_unknown(reader):
    for each in reader.gpus():
        asked = reader.recovery_action(each.uuid)
        assert asked is None or isinstance(asked, RecoveryAction)


def test_profiles_are_named_and_fit_the_gpu(reader, capable):
    for uuid in capable:
        for profile in reader.profiles(uuid):
            assert PROFILE_NAME.fullmatch(profile.name)
            assert profile.name.endswith(profile.attribute)
            assert 0 < profile.memory_mib <= reader.gpu(uuid).memory_mib
            assert profile.placements == tuple(sorted(set(profile.placements)))


def test_instances_have_legal_placements_that_do_not_overlap(reader, capable):
    for uuid in capable:
        legal = {
            (each.profile_id, one) for each in reader.profiles(uuid) for one in each.placements
        }
        found = reader.instances(uuid)
        assert {(each.profile_id, each.placement) for each in found} <= legal
        assert (
            sum(each.placement.size for each in found)
            == sum(each.placement.mask for each in found).bit_count()
        )


def test_processes_name_instances_that_exist(reader, capable):
    for uuid in capable:
        known = {None} | {each.gpu_instance_id for each in reader.instances(uuid)}
        assert {each.gpu_instance_id for each in reader.processes(uuid)} <= known


def test_remaining_capacity_is_within_the_instance_count_or_needs_mig(reader, capable):
    for uuid in capable:
        for profile in reader.profiles(uuid):
            if reader.gpu(uuid).mig_current:
                left = reader.remaining_capacity(uuid, profile.profile_id)
                assert 0 <= left <= profile.instance_count
            else:
                with pytest.raises(DriverNotSupported):
                    reader.remaining_capacity(uuid, profile.profile_id)


def test_an_unknown_gpu_is_an_error_of_ours(reader):
    with pytest.raises(DriverError):
        reader.gpu("GPU-00000000-0000-0000-0000-000000000000")
