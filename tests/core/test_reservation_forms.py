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
