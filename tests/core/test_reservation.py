"""The codec of hami.io/vgpu-mig-allocations."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_web.core.errors import InvalidField, MalformedContract
from hami_web.core.placement import Placement
from hami_web.core.reservation import (
    Reservation,
    RuntimeIdentity,
    decode_allocations,
    encode_allocations,
)
from tests.builders import reservation

GOLDEN = Path(__file__).parent.parent / "golden" / "contract" / "allocations.txt"
ENTRY = {
    "containerIndex": 0,
    "deviceIndex": 0,
    "gpuUUID": "GPU-1",
    "profile": "2g.10gb",
    "placement": {"start": 2, "size": 2},
}
RUNTIME = {"migUUID": "MIG-1", "gpuInstanceID": 0, "computeInstanceID": 0}


@pytest.mark.parametrize("text", GOLDEN.read_text().splitlines())
def test_what_hami_writes_is_read_and_written_again_byte_for_byte(text: str) -> None:
    assert encode_allocations(decode_allocations(text)) == text


def test_ids_of_zero_are_part_of_the_identity_and_are_written() -> None:
    text = encode_allocations([reservation(identity=RuntimeIdentity("MIG-1", 0, 0))])
    assert text.endswith('"migUUID":"MIG-1","gpuInstanceID":0,"computeInstanceID":0}]')
    assert decode_allocations(text)[0].identity == RuntimeIdentity("MIG-1", 0, 0)


def test_no_annotation_means_no_reservation() -> None:
    assert decode_allocations("") == ()


def test_records_are_written_in_the_order_of_containers_and_devices() -> None:
    unordered = [reservation(1, 0), reservation(0, 1), reservation(0, 0)]
    assert [r.key for r in decode_allocations(encode_allocations(unordered))] == [
        (0, 0),
        (0, 1),
        (1, 0),
    ]


def test_unknown_keys_of_a_record_are_kept() -> None:
    text = json.dumps([ENTRY | {"generation": 3}], separators=(",", ":"))
    assert encode_allocations(decode_allocations(text)) == text


@pytest.mark.parametrize("missing", ["containerIndex", "gpuUUID", "profile", "placement"])
def test_a_record_without_a_field_refuses_the_whole_annotation(missing: str) -> None:
    entry = {key: value for key, value in ENTRY.items() if key != missing}
    with pytest.raises(MalformedContract, match=missing):
        decode_allocations(json.dumps([ENTRY | {"deviceIndex": 1}, entry]))


@pytest.mark.parametrize(
    "change",
    [
        {"containerIndex": -1},
        {"deviceIndex": 1.0},
        {"deviceIndex": True},
        {"gpuUUID": ""},
        {"profile": 7},
        {"placement": {"start": 1.5, "size": 1}},
        {"placement": {"start": 0, "size": 0}},
        {"placement": {"start": 0, "size": -2}},
        {"placement": {"start": 10**9, "size": 1}},
        {"placement": [0, 2]},
        RUNTIME | {"gpuInstanceID": "3"},
    ],
)
def test_a_wrong_value_refuses_the_whole_annotation(change: dict[str, object]) -> None:
    with pytest.raises(MalformedContract, match="vgpu-mig-allocations"):
        decode_allocations(json.dumps([ENTRY | change]))


@pytest.mark.parametrize("dropped", [{"migUUID"}, {"gpuInstanceID"}, {"migUUID", "gpuInstanceID"}])
def test_part_of_a_runtime_identity_is_refused(dropped: set[str]) -> None:
    part = {key: value for key, value in RUNTIME.items() if key not in dropped}
    with pytest.raises(MalformedContract, match="runtime identity"):
        decode_allocations(json.dumps([ENTRY | part]))


def test_one_device_twice_is_refused() -> None:
    with pytest.raises(MalformedContract, match="each device once"):
        decode_allocations(json.dumps([ENTRY, ENTRY]))


@pytest.mark.parametrize("text", ["{", "{}", "7", '"x"', "[1]", "[" * 5000])
def test_text_that_is_no_list_of_records_is_refused(text: str) -> None:
    with pytest.raises(MalformedContract):
        decode_allocations(text)


identities = st.none() | st.builds(
    RuntimeIdentity, st.text(min_size=1), st.integers(0, 14), st.integers(0, 7)
)
reservations = st.builds(
    Reservation,
    st.integers(0, 9),
    st.integers(0, 9),
    st.text(min_size=1),
    st.text(min_size=1),
    st.builds(Placement, st.integers(0, 11), st.integers(1, 12)),
    identities,
)


@given(st.lists(reservations, unique_by=lambda r: r.key))
def test_decoding_what_was_encoded_gives_it_back(items: list[Reservation]) -> None:
    ordered = tuple(sorted(items, key=lambda r: r.key))
    assert decode_allocations(encode_allocations(items)) == ordered


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_and_never_crashes(text: str) -> None:
    with suppress(InvalidField):
        decode_allocations(text)
