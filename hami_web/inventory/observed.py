"""What was seen of nodes and GPUs, and what making the rows equal to it changed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hami_web.core.blocked import BlockedInterval
from hami_web.core.capability import GpuCapability
from hami_web.core.errors import MalformedContract
from hami_web.inventory.models import KEY_MAX

NUL = "\0"


@dataclass(frozen=True, slots=True)
class ObservedGpu:
    """One GPU as its node publishes it. ``closed`` is the code why it takes no new work."""

    capability: GpuCapability
    closed: str = ""
    cordoned: bool = False
    blocked: tuple[BlockedInterval, ...] = ()


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """One node. ``gpus`` is None when what it publishes cannot be read: its GPUs stay as known.

    ``refused`` are UUIDs whose entry alone cannot be read; they stay as known, but closed.
    """

    name: str
    gpus: tuple[ObservedGpu, ...] | None
    closed: str = ""
    doubts: tuple[str, ...] = ()
    unschedulable: bool = False
    refused: tuple[str, ...] = ()
    other_owner: str = ""


class DifferenceKind(StrEnum):
    """How the rows differed from the cluster."""

    MISSING = "missing"
    """The cluster has it, the mirror did not."""
    VANISHED = "vanished"
    """The mirror had it, the cluster does not."""
    CHANGED = "changed"
    """Both had it, with other facts."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One correction of the mirror. ``entity`` is the kind of row, ``key`` names it."""

    kind: DifferenceKind
    entity: str
    key: str
    detail: str = ""


def storable(text: str, limit: int) -> str:
    """A foreign text that is only shown: without NUL, which PostgreSQL refuses, and cut."""
    text = text.replace(NUL, "\N{REPLACEMENT CHARACTER}")
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def checked_key(text: str, field: str) -> str:
    """A foreign text that identifies something; MalformedContract when no row can hold it."""
    if len(text) > KEY_MAX or NUL in text:
        raise MalformedContract(field, text, f"at most {KEY_MAX} characters, none of them NUL")
    return text
