"""Allowlist parsing, and matching against the names NVML really reports."""

from __future__ import annotations

import pytest

from hami_web.core.allowlist import parse_allowlist
from hami_web.core.device_config import parse_device_config
from hami_web.core.errors import InvalidPolicy

# The default table of HAMi v2.10's chart: models, then the profiles' row number.
DEFAULT_MODELS = [
    ["A30"],
    ["A100-SXM4-40GB", "A100-40GB-PCIe", "A100-PCIE-40GB"],
    ["A100-SXM4-80GB", "A100-80GB-PCIe", "A100-PCIE-80GB"],
    ["H100-PCIE-80GB", "H100-SXM5-80GB"],
    ["H100-PCIE-94GB", "H100-SXM5-94GB"],
    ["H20", "H100 on GH200"],
    ["H200 NVL", "H200-SXM5"],
    ["B200"],
    ["RTX PRO 6000 Blackwell Server Edition"],
]
DEFAULT = parse_allowlist(
    [
        {"models": models, "profiles": [f"{row}g.{row}gb"]}
        for row, models in enumerate(DEFAULT_MODELS)
    ]
)


@pytest.mark.parametrize(
    ("reported", "row"),
    [
        ("NVIDIA A30", 0),
        ("NVIDIA A100-SXM4-40GB", 1),
        ("A100-SXM4-40GB", 1),
        ("NVIDIA A100-PCIE-40GB", 1),
        ("NVIDIA A100-SXM4-80GB", 2),
        ("NVIDIA A100 80GB PCIe", 2),
        ("NVIDIA H100 PCIe", 3),
        ("NVIDIA H100 80GB HBM3", 3),
        ("NVIDIA H100 NVL", 4),
        ("NVIDIA H20", 5),
        ("NVIDIA GH200 480GB", 5),
        ("NVIDIA H200", 6),
        ("NVIDIA H200 NVL", 6),
        ("NVIDIA B200", 7),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 8),
    ],
)
def test_the_default_table_finds_each_board_by_the_name_nvml_reports(
    reported: str, row: int
) -> None:
    assert DEFAULT.profiles_for(reported) == (f"{row}g.{row}gb",)


@pytest.mark.parametrize(
    "reported",
    [
        "NVIDIA GB200",
        "NVIDIA A10",
        "NVIDIA A300",
        "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
        "",
    ],
)
def test_a_board_that_is_not_listed_has_no_profiles(reported: str) -> None:
    assert DEFAULT.profiles_for(reported) is None


def test_the_entry_with_more_words_wins_whatever_the_order() -> None:
    entries = [
        {"models": ["H100"], "profiles": ["1g.10gb"]},
        {"models": ["H100 NVL"], "profiles": ["1g.12gb"]},
    ]
    for order in (entries, entries[::-1]):
        assert parse_allowlist(order).profiles_for("NVIDIA H100 NVL") == ("1g.12gb",)


def test_profiles_the_gpu_has_not_are_named_and_an_old_label_finds_the_present_one() -> None:
    allowlist = parse_allowlist([{"models": ["A100"], "profiles": ["7g.79gb", "5g.50gb"]}])
    found, missing = allowlist.select("NVIDIA A100-SXM4-80GB", {"7g.80gb": 7, "1g.10gb": 1})
    assert (found, missing) == ([7], ["5g.50gb"])


def test_a_plain_name_does_not_permit_the_profile_with_an_attribute() -> None:
    allowlist = parse_allowlist([{"models": ["A100"], "profiles": ["1g.24gb"]}])
    found, _ = allowlist.select("A100", {"1g.24gb+gfx": "gfx", "1g.24gb": "plain"})
    assert found == ["plain"]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (None, "migProfileAllowlist"),
        ([], "migProfileAllowlist"),
        ({"models": []}, "migProfileAllowlist"),
        (["A100"], "migProfileAllowlist[0]"),
        ([{"models": [], "profiles": ["1g.5gb"]}], "[0].models"),
        ([{"models": ["A100"]}], "[0].profiles"),
        ([{"models": ["A100"], "profiles": []}], "[0].profiles"),
        ([{"models": ["-"], "profiles": ["1g.5gb"]}], "[0].models"),
        ([{"models": ["A100"], "profiles": ["1g"]}], "[0].profiles"),
        ([{"models": ["A100"], "profiles": ["g.5gb"]}], "[0].profiles"),
        ([{"models": ["A100"], "profiles": [5]}], "[0].profiles"),
    ],
)
def test_a_wrong_allowlist_is_refused_and_the_field_is_named(value: object, field: str) -> None:
    with pytest.raises(InvalidPolicy) as caught:
        parse_allowlist(value)
    assert field in str(caught.value)


def test_a_configuration_of_whole_gpu_geometries_is_refused() -> None:
    with pytest.raises(InvalidPolicy, match="knownMigGeometries"):
        parse_device_config({"nvidia": {"knownMigGeometries": []}})


@pytest.mark.parametrize("document", [None, [], {}, {"nvidia": None}])
def test_a_configuration_without_its_section_is_refused(document: object) -> None:
    with pytest.raises(InvalidPolicy, match="nvidia"):
        parse_device_config(document)
