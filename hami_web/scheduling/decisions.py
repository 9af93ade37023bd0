"""What a filter ends in, for the edge that answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


class NotReady(Exception):
    """The cluster is not known well enough to decide; answered with 503, never with a guess."""


@dataclass(frozen=True, slots=True)
class Fits:
    """The nodes that may take the Pod: one with a hold, or all for a Pod without GPUs."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RefusedEverywhere:
    """Why each node cannot take the Pod; ``unresolvable`` where no eviction would help."""

    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)
