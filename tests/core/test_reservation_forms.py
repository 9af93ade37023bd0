"""The quick way to read the most frequent annotation finds what the thorough way finds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_web.core.errors import MalformedContract
from hami_web.core.placement import Placement
from hami_web.core.reservation import (
    Reservation,
    RuntimeIdentity,
    decode_allocations,
    encode_allocations,
)

REALIZED = Reservation(0, 0, "GPU-a", "2g.10gb", Placement(0, 2), RuntimeIdentity("MIG-1", 7, 0))
words = st.text('abcGPU0189-.+_ é"\\', min_size=1, max_size=12)
identities = st.none() | st.builds(
    RuntimeIdentity, words, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)
)
records = st.builds(
    Reservation,
    st.integers(0, 10**6),
    st.integers(0, 99),
    words,
    words,
    st.builds(Placement, st.integers(0, 1024), st.integers(1, 1024)),
    identities,
)


@given(records)
def test_both_ways_agree(record: Reservation) -> None:
    text = encode_allocations([record])
    thorough = json.dumps(json.loads(text), indent=1)
    assert decode_allocations(text) == decode_allocations(thorough) == (record,)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"containerIndex":0', '"containerIndex":00'),
        ('"containerIndex":0', '"containerIndex":-1'),
        ('"start":0', '"start":2000'),
        ('"start":0', '"start":0.0'),
        ('"size":2', '"size":0'),
        ('"gpuUUID":"GPU-a"', '"gpuUUID":""'),
        ("}]", "}"),
    ],
)
def test_what_is_nearly_the_frequent_form_is_still_checked(old: str, new: str) -> None:
    text = encode_allocations([Reservation(0, 0, "GPU-a", "2g.10gb", Placement(0, 2))])
    with pytest.raises(MalformedContract):
        decode_allocations(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"gpuUUID":"GPU-a"', '"gpuUUID":"GPU-a","gpuUUID":"GPU-b"', ("GPU-b", "MIG-1")),
        ('"gpuUUID":"GPU-a"', r'"gpuUUID":"GPU-\u0061"', ("GPU-a", "MIG-1")),
        ('"migUUID":"MIG-1"', '"migUUID":"MIG-1","migUUID":"MIG-2"', ("GPU-a", "MIG-2")),
        ('"migUUID":"MIG-1"', '"migUUID":"MIG-3"', ("GPU-a", "MIG-3")),
    ],
)
def test_a_text_is_read_by_its_own_uuids(old: str, new: str, expected: tuple[str, str]) -> None:
    (found,) = decode_allocations(encode_allocations([REALIZED]).replace(old, new))
    assert found.identity is not None
    assert (found.gpu_uuid, found.identity.mig_uuid) == expected


@pytest.mark.parametrize("rest", ['"migUUID":"', '"migUUID":"x', '"migUUID":"x"', "\x00"])
def test_what_follows_the_frequent_form_is_read_too(rest: str) -> None:
    text = encode_allocations([Reservation(0, 0, "GPU-a", "2g.10gb", Placement(0, 2))])
    assert decode_allocations(text)
    with pytest.raises(MalformedContract):
        decode_allocations(text + rest)


@pytest.mark.parametrize("uuid", ["GPU-a\t", "GPU-a\n", "GPU-\x7f\x00"])
def test_control_characters_in_a_uuid_are_refused_beside_its_like(uuid: str) -> None:
    text = encode_allocations([REALIZED])
    assert decode_allocations(text) == (REALIZED,)
    for known in ("GPU-a", "MIG-1"):
        with pytest.raises(MalformedContract):
            decode_allocations(text.replace(known, uuid))


def test_an_empty_mig_uuid_is_refused_beside_its_like() -> None:
    text = encode_allocations([REALIZED])
    assert decode_allocations(text) == (REALIZED,)
    with pytest.raises(MalformedContract):
        decode_allocations(text.replace("MIG-1", ""))
