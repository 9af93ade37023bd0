"""Codec of ``hami.io/node-mig-blocked``: memory slices of a node that no reservation explains.

The node's agent publishes foreign instances and those whose destroy was refused; the extender
counts them as occupied (design decision 11). HAMi ignores the key.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hami_web.core import wire
from hami_web.core.annotations import NODE_MIG_BLOCKED
from hami_web.core.errors import MalformedContract
from hami_web.core.placement import Placement
from hami_web.core.registration import MEMORY_SLICES_MAX

FOREIGN: Final = "foreign instance"
"""Reason of an instance that nobody reserved and that this product did not make."""
ALTERED: Final = "its Pod's reservation was altered or is not signed"
"""Reason of an instance in use that its Pod's annotations do not tell of."""
_RECLAIMING: Final = "reclaiming: "


def reclaiming(why: str) -> str:
    """Reason of an instance whose owner is gone and that could not be destroyed yet."""
    return _RECLAIMING + why


def is_reclaiming(reason: str) -> bool:
    """Whether a reason tells of an instance of ours that is to be destroyed."""
    return reason.startswith(_RECLAIMING)


@dataclass(frozen=True, slots=True, order=True)
class BlockedInterval:
    """Memory slices of one GPU that take no instance, and why, in words for an operator."""

    gpu_uuid: str
    placement: Placement
    reason: str


def encode_blocked(intervals: Iterable[BlockedInterval]) -> str:
    """Write the intervals sorted and each once, so that equal facts are equal text."""
    return wire.encode(
        [
            {
                "gpuUUID": item.gpu_uuid,
                "start": item.placement.start,
                "size": item.placement.size,
                "reason": item.reason,
            }
            for item in sorted(set(intervals))
        ]
    )


def decode_blocked(text: str) -> tuple[BlockedInterval, ...]:
    """Read the intervals, all of them or none; the empty string means none.

    Raises :class:`MalformedContract` naming the field: then it is not known what is free on the
    node, and it must take no new work.
    """
    if not text:
        return ()
    return tuple(
        _decode(item, f"{NODE_MIG_BLOCKED}[{position}]")
        for position, item in enumerate(wire.decode_array(text, NODE_MIG_BLOCKED))
    )


def _decode(item: object, where: str) -> BlockedInterval:
    fields = wire.as_object(item, where)
    reason = fields.get("reason", "")
    if not isinstance(reason, str):
        raise MalformedContract(f"{where}.reason", reason, "a string")
    return BlockedInterval(
        gpu_uuid=wire.as_text(fields.get("gpuUUID"), f"{where}.gpuUUID"),
        placement=Placement(
            wire.as_integer(fields.get("start"), f"{where}.start", most=MEMORY_SLICES_MAX),
            wire.as_integer(fields.get("size"), f"{where}.size", least=1, most=MEMORY_SLICES_MAX),
        ),
        reason=reason,
    )
