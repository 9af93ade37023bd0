"""Codec of ``hami.io/device-cordon``: the GPUs of a node that take no new work."""

from __future__ import annotations

from collections.abc import Iterable


def decode_cordon(text: str) -> tuple[str, ...]:
    """UUIDs in order, each once; blanks and empty entries say nothing, as in HAMi."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def encode_cordon(uuids: Iterable[str]) -> str:
    """UUIDs as the annotation has them; the empty string for none."""
    return ",".join(dict.fromkeys(uuids))
