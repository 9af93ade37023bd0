"""What a planner answers: which device goes where on one node."""

from __future__ import annotations

from dataclasses import dataclass

from hami_web.core.capability import GpuCapability
from hami_web.core.placement import Placement
from hami_web.core.shapes import Shape


@dataclass(frozen=True, slots=True)
class Pick:
    """One planned device: which kind, on which GPU, as which profile, where."""

    kind: int
    gpu: GpuCapability
    shape: Shape
    placement: Placement


@dataclass(frozen=True, slots=True)
class NodePlan:
    """A plan for one node. Lower ``rank`` is better, comparable between nodes."""

    rank: tuple[int, ...]
    picks: tuple[Pick, ...]
