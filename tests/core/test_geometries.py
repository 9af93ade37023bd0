"""Whole-GPU geometries become the union of their profiles, with a reason for every choice."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_web.core.allowlist import AllowlistEntry, parse_allowlist, render_allowlist
from hami_web.core.device_config import parse_device_config
from hami_web.core.errors import InvalidPolicy
from hami_web.core.geometries import Conversion, NoteCode, convert, difference, holds_geometries
from hami_web.core.known_profiles import KNOWN_PROFILES, PCI_MODELS

ROOT = Path(__file__).parents[2]


def legacy(*geometries: object, models: tuple[str, ...] = ("A30",)) -> dict[str, Any]:
    entry = {"models": list(models), "allowedGeometries": list(geometries)}
    return {"nvidia": {"knownMigGeometries": [entry]}}


def instance(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "count": 1, **more}


def parted(**layouts: object) -> dict[str, Any]:
    return {
        "version": "v1",
        "mig-configs": {key.replace("_", "-"): v for key, v in layouts.items()},
    }


def profiles(conversion: Conversion) -> dict[str, tuple[str, ...]]:
    return {model: entry.profiles for entry in conversion.entries for model in entry.models}


def codes(conversion: Conversion) -> list[NoteCode]:
    return [note.code for note in conversion.notes]


LISTS = ([instance("1g.6gb", memory=6144)], [instance("2g.12gb")])
GROUPS = ({"group": "a", "geometries": LISTS[0]}, {"group": "b", "geometries": LISTS[1]})
ALONE = (LISTS[0][0], LISTS[1][0])


@pytest.mark.parametrize("shape", [LISTS, GROUPS, ALONE], ids=["lists", "groups", "alone"])
@pytest.mark.parametrize("inside", [True, False], ids=["in nvidia", "at the top"])
def test_every_shape_that_hami_had_gives_the_same_union(shape: tuple, *, inside: bool) -> None:
    document = legacy(*copy.deepcopy(shape))
    found = convert(document if inside else document["nvidia"])
    assert profiles(found) == {"A30": ("1g.6gb", "2g.12gb")}
    assert codes(found) == [NoteCode.FROM_GEOMETRY] * 2


def test_models_with_the_same_profiles_share_an_entry_in_the_order_of_size() -> None:
    found = convert(
        legacy(
            [instance("7g.40gb")],
            [instance("1g.5gb"), instance("2g.10gb")],
            models=("A100-SXM4-40GB", "A100-PCIE-40GB"),
        )
    )
    models = ("A100-SXM4-40GB", "A100-PCIE-40GB")
    assert found.entries == (AllowlistEntry(models, ("1g.5gb", "2g.10gb", "7g.40gb")),)


def test_a_label_of_older_drivers_gets_its_present_name() -> None:
    found = convert(legacy([instance("7g.79gb")], models=("H100-SXM5-80GB",)))
    assert profiles(found) == {"H100-SXM5-80GB": ("7g.80gb",)}
    assert codes(found) == [NoteCode.RENAMED, NoteCode.FROM_GEOMETRY]


def test_a_profile_that_nvml_does_not_name_is_left_out_and_told() -> None:
    found = convert(legacy([instance("3g.21gb"), instance("1g.6gb")]))
    assert profiles(found) == {"A30": ("1g.6gb",)}
    assert codes(found) == [NoteCode.NOT_NAMED_BY_NVML, NoteCode.FROM_GEOMETRY]


def test_an_unknown_model_keeps_what_people_wrote() -> None:
    found = convert(legacy([instance("1g.7gb")], models=("X900",)))
    assert profiles(found) == {"X900": ("1g.7gb",)}
    assert codes(found) == [NoteCode.MODEL_NOT_KNOWN, NoteCode.FROM_GEOMETRY]


def test_contradictions_are_told_and_cost_nothing() -> None:
    found = convert(
        legacy([instance("1g.6gb", memory=6144, count=9)], [instance("1g.6gb", memory=5836)])
    )
    assert profiles(found) == {"A30": ("1g.6gb",)}
    assert codes(found) == [
        NoteCode.COUNT_IMPOSSIBLE,
        NoteCode.FROM_GEOMETRY,
        NoteCode.MEMORY_CONTRADICTS,
    ]


def test_a_half_converted_configuration_loses_neither_half() -> None:
    document = legacy([instance("1g.6gb")])
    document["nvidia"]["migProfileAllowlist"] = [{"models": ["A30"], "profiles": ["4g.24gb"]}]
    found = convert(document)
    assert profiles(found) == {"A30": ("1g.6gb", "4g.24gb")}
    assert codes(found) == [NoteCode.FROM_GEOMETRY, NoteCode.FROM_ALLOWLIST]


def test_a_device_filter_of_mig_parted_names_its_models() -> None:
    part = {"device-filter": ["0x20B010DE", "0x20f110de"], "devices": "all", "mig-enabled": True}
    found = convert(parted(balanced=[{**part, "mig-devices": {"1g.5gb": 2, "3g.20gb": 1}}]))
    assert profiles(found) == {
        "A100-SXM4-40GB": ("1g.5gb", "3g.20gb"),
        "A100-PCIE-40GB": ("1g.5gb", "3g.20gb"),
    }


def test_a_layout_for_any_device_permits_it_where_so_many_fit() -> None:
    part = {"devices": "all", "mig-enabled": True, "mig-devices": {"1g.10gb": 7}}
    off = {"devices": "all", "mig-enabled": False}
    found = convert(parted(all_disabled=[off], all_1g=[part]))
    # An A100 of 40 GB has 1g.10gb too, but only four of them.
    assert "A100-SXM4-40GB" not in profiles(found)
    assert profiles(found)["H100 80GB HBM3"] == ("1g.10gb",)
    assert codes(found)[:2] == [NoteCode.WITHOUT_MIG, NoteCode.ANY_MODEL]


def test_a_filter_that_nobody_knows_is_told() -> None:
    part = {"device-filter": "0x123410DE", "mig-enabled": True, "mig-devices": {"1g.5gb": 7}}
    found = convert(parted(odd=[part]))
    assert found.entries == ()
    assert [(note.code, note.detail) for note in found.notes] == [
        (NoteCode.FILTER_NOT_KNOWN, "0x123410DE")
    ]


def cyclic() -> dict[str, Any]:
    document = legacy([instance("1g.6gb")])
    document["nvidia"]["knownMigGeometries"][0]["allowedGeometries"].append(document)
    return document


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (None, "configuration"),
        ({"nvidia": []}, "nvidia"),
        ({"nvidia": {}}, "nvidia"),
        ({"nvidia": {"knownMigGeometries": {}}}, "nvidia.knownMigGeometries"),
        ({"nvidia": {"knownMigGeometries": ["A30"]}}, r"knownMigGeometries\[0\]"),
        (legacy(), r"allowedGeometries"),
        (legacy(models=()), r"\.models"),
        (legacy([instance("1g.6gb")], models=(7,)), r"\.models"),
        (legacy(["1g.6gb"]), r"allowedGeometries\[0\]\[0\]"),
        (legacy([instance("six")]), r"\[0\]\[0\]\.name"),
        (legacy([instance("1g.6gb", count=0)]), r"\.count"),
        (legacy([instance("1g.6gb", count=True)]), r"\.count"),
        (legacy([instance("1g.6gb", memory="6Gi")]), r"\.memory"),
        (legacy({"group": "a"}), r"\.geometries"),
        (parted(a={}), r"mig-configs\.a"),
        (parted(a=[{"mig-enabled": True, "mig-devices": {"big": 1}}]), r"mig-devices"),
        (parted(a=[{"mig-enabled": True, "mig-devices": {"1g.5gb": "7"}}]), r"1g\.5gb"),
        (cyclic(), "contain itself"),
    ],
)
def test_a_wrong_shape_is_refused_by_its_field(document: object, field: str) -> None:
    with pytest.raises(InvalidPolicy, match=field):
        convert(document)


def test_a_device_configuration_with_geometries_is_refused_with_what_it_would_be() -> None:
    with pytest.raises(InvalidPolicy) as refused:
        parse_device_config(legacy([instance("2g.12gb")]))
    assert '- models: ["A30"]\n    profiles: ["2g.12gb"]' in str(refused.value)
    with pytest.raises(InvalidPolicy, match="cannot be converted"):
        parse_device_config(legacy(["?"]))


def test_what_is_needed_is_compared_model_by_model() -> None:
    current = {"A30": frozenset({"1g.6gb", "4g.24gb"}), "H20": frozenset({"1g.12gb"})}
    wanted = {"A30": frozenset({"1g.6gb", "2g.12gb"}), "H20": frozenset({"1g.12gb"})}
    assert difference(current, wanted) == {"A30": (frozenset({"2g.12gb"}), frozenset({"4g.24gb"}))}


names = st.sampled_from(sorted({name for known in KNOWN_PROFILES.values() for name in known}))
entries = st.lists(
    st.lists(st.builds(instance, names), min_size=1, max_size=4), min_size=1, max_size=4
)


@given(model=st.sampled_from(sorted(KNOWN_PROFILES)), geometries=entries)
def test_every_profile_is_in_the_result_or_in_a_note(model: str, geometries: list) -> None:
    document = legacy(*geometries, models=(model,))
    assert holds_geometries(document)
    found = convert(document)
    kept = set(profiles(found).get(model, ()))
    left = {n.profile for n in found.notes if n.code is NoteCode.NOT_NAMED_BY_NVML}
    wanted = {item["name"] for geometry in geometries for item in geometry}
    assert kept == wanted & KNOWN_PROFILES[model].keys()
    assert kept | left == wanted
    if found.entries:
        assert render_allowlist(found.entries).startswith("nvidia:\n")


def test_a_rendered_allowlist_is_read_as_the_same() -> None:
    yaml = pytest.importorskip("yaml")
    given_entries = (AllowlistEntry(("A100 80GB PCIe", "H20"), ("1g.10gb", "1g.10gb+me")),)
    section = yaml.safe_load(render_allowlist(given_entries))["nvidia"]
    assert parse_allowlist(section["migProfileAllowlist"]).entries == given_entries


def test_what_is_known_of_a_model_is_what_its_simulated_board_has() -> None:
    listed = json.loads((ROOT / "node_agent/nvml/simulated/mig-profiles.json").read_text())["gpus"]
    boards = {
        board["device_name"].removeprefix("NVIDIA "): {
            item["name"]: item["instance_count"] for item in board["profiles"]
        }
        for board in listed
        if board["profiles"]
    }
    assert len(boards) > 20
    assert {model: KNOWN_PROFILES.get(model) for model in boards} == boards


def test_every_filter_names_a_model_whose_profiles_are_known() -> None:
    assert set(PCI_MODELS.values()) <= KNOWN_PROFILES.keys()
