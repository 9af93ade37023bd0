"""The profile data and the rule for names."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from hami_web.core.placement import Placement
from node_agent.nvml.naming import derived_profile_name, plain_profile_name
from node_agent.nvml.simulated import gpu_models
from node_agent.nvml.simulated.state import Gpu
from node_agent.nvml.simulated.topology import compute_profiles, gpu_instance_id

VARIANTS = [(model, each) for model in gpu_models("variant").values() for each in model.profiles]
PROFILES = [(model, each) for model in gpu_models().values() for each in model.profiles]


@pytest.mark.parametrize(("model", "profile"), PROFILES + VARIANTS)
def test_the_name_follows_from_the_figures(model, profile):
    found = derived_profile_name(
        profile.enum, profile.compute_slices, profile.memory_mib, model.total_memory_mib
    )
    assert found == profile.name


def test_the_prefix_of_reported_names_is_taken_off():
    assert plain_profile_name("MIG 1g.5gb+me") == "1g.5gb+me"


def test_only_profiles_with_unknown_figures_are_estimated():
    rows = json.loads(files("node_agent.nvml.simulated").joinpath("mig-profiles.json").read_text())[
        "gpus"
    ]
    unknown = {
        (row["key"], each["name"])
        for row in rows
        for each in row["profiles"]
        if None in (each["memory_mib"], each["multiprocessors"], each["decoder"])
    }
    assert unknown == {(model.key, each.name) for model, each in PROFILES if each.estimated}
    assert unknown


@pytest.mark.parametrize("key", [each.key for each in gpu_models().values() if each.profiles])
@pytest.mark.parametrize("id_map", ["identity", "swapped"])
def test_disjoint_placements_have_different_ids_of_at_most_fourteen(key, id_map):
    model = gpu_models()[key]
    gpu = Gpu("GPU-x", key, 0, 0, "", id_map)
    placed = {Placement(start, each.size) for each in model.profiles for start in each.starts}
    ids = {each: gpu_instance_id(gpu, each) for each in placed}
    assert set(ids.values()) <= set(range(15))
    assert len(set(ids.values())) == len(placed)


def test_published_maps_from_placement_to_id():
    swapped = Gpu("GPU-x", "a100-sxm4-40gb", 0, 0, "", "swapped")
    found = {start: gpu_instance_id(swapped, Placement(start, 1)) for start in range(7)}
    assert found == {4: 7, 5: 8, 6: 9, 0: 11, 1: 12, 2: 13, 3: 14}


@pytest.mark.parametrize(
    ("model", "profile"), PROFILES, ids=[f"{model.key}-{each.name}" for model, each in PROFILES]
)
def test_some_compute_profile_spans_every_gpu_instance(model, profile):
    largest = max(each.compute_slices for each in compute_profiles(model, profile))
    assert largest == profile.compute_slices


def test_media_engines_are_counted_where_figures_are_known():
    assert gpu_models()["a100-sxm4-40gb"].engine_totals().decoder == 5
    assert gpu_models()["rtx-pro-6000-se"].engine_totals().jpeg == 4


def test_other_drivers_report_other_memory_for_the_same_profile():
    published, other = (
        {each.name: each.memory_mib for each in gpu_models(memory)["a30"].profiles}
        for memory in ("published", "variant")
    )
    assert published.keys() == other.keys()
    assert (published["2g.12gb"], other["2g.12gb"]) == (11968, 11672)
