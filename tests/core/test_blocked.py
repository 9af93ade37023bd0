"""The annotation in which an agent tells what no reservation explains."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_web.core.blocked import BlockedInterval, decode_blocked, encode_blocked
from hami_web.core.errors import MalformedContract
from hami_web.core.placement import Placement

intervals = st.builds(
    BlockedInterval,
    gpu_uuid=st.text("abcGPU-", min_size=1, max_size=8),
    placement=st.builds(Placement, st.integers(0, 20), st.integers(1, 8)),
    reason=st.text(max_size=10),
)


def test_the_wire_form_is_pinned() -> None:
    text = encode_blocked([BlockedInterval("GPU-a", Placement(4, 2), "foreign instance")])
    assert text == '[{"gpuUUID":"GPU-a","start":4,"size":2,"reason":"foreign instance"}]'


@given(st.lists(intervals, max_size=6))
def test_reading_gives_back_what_was_written(items: list[BlockedInterval]) -> None:
    assert decode_blocked(encode_blocked(items)) == tuple(sorted(set(items)))


@given(st.lists(intervals, max_size=6))
def test_the_text_does_not_depend_on_the_order(items: list[BlockedInterval]) -> None:
    assert encode_blocked(items) == encode_blocked(reversed(items))


def test_no_text_is_no_interval() -> None:
    assert decode_blocked("") == ()


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[1]",
        '[{"gpuUUID":"","start":0,"size":1,"reason":""}]',
        '[{"gpuUUID":"g","start":-1,"size":1,"reason":""}]',
        '[{"gpuUUID":"g","start":0,"size":0,"reason":""}]',
        '[{"gpuUUID":"g","start":0.5,"size":1,"reason":""}]',
        '[{"gpuUUID":"g","start":0,"size":1,"reason":3}]',
        "[",
    ],
)
def test_malformed_text_is_refused(text: str) -> None:
    with pytest.raises(MalformedContract):
        decode_blocked(text)
