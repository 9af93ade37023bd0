"""Handles: numbers that stand for a GPU, an instance or a MIG device, as opaque as NVML's pointers.

A handle is made of what it names, so its value is used again when the same ids are: a handle that
outlived its instance is refused, until somebody makes an instance with the same ids and the handle
means that one. Handles of an earlier session, or from before a reset, are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Kind(IntEnum):
    GPU = 1
    GPU_INSTANCE = 2
    COMPUTE_INSTANCE = 3
    MIG_DEVICE = 4
    EVENT_SET = 5


_MAGIC = 0x4D
_ID_BITS = 8
_MASK = (1 << _ID_BITS) - 1


@dataclass(frozen=True, slots=True)
class Handle:
    """``position`` is the GPU's place in the state, for an event set its number."""

    kind: Kind
    session: int
    position: int
    attach: int = 0
    gi_id: int = 0
    ci_id: int = 0

    def encode(self) -> int:
        value = _MAGIC
        for part in (self.session, self.attach, self.kind, self.position, self.gi_id, self.ci_id):
            value = value << _ID_BITS | part & _MASK
        return value


def decode_handle(value: int | None) -> Handle | None:
    """None for a number that is no handle."""
    if value is None or value >> 6 * _ID_BITS != _MAGIC:
        return None
    session, attach, kind, position, gi_id, ci_id = value.to_bytes(7, "big")[1:]
    if kind not in Kind.__members__.values():
        return None
    return Handle(Kind(kind), session, position, attach, gi_id, ci_id)
