"""The list of cordoned GPUs on a node."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hami_web.core.cordon import decode_cordon, encode_cordon

uuids = st.text("ABC-123", min_size=1)


@given(st.lists(uuids, unique=True))
def test_what_was_written_is_read(listed: list[str]) -> None:
    assert decode_cordon(encode_cordon(listed)) == tuple(listed)


def test_blanks_empty_entries_and_repetitions_say_nothing() -> None:
    assert decode_cordon(" GPU-a ,, GPU-b,GPU-a, ") == ("GPU-a", "GPU-b")
    assert decode_cordon("") == ()
    assert encode_cordon(["GPU-a", "GPU-a"]) == "GPU-a"
