"""What a planner answers: which device goes where on one node.

Named tuples, because each decision makes some: a frozen dataclass takes thrice as long.
"""

from __future__ import annotations

from typing import NamedTuple

from hami_web.core.capability import GpuCapability
from hami_web.core.placement import Placement
from hami_web.core.shapes import Shape


class Pick(NamedTuple):
    """One planned device: which kind, on which GPU, as which profile, where."""

    kind: int
    gpu: GpuCapability
    shape: Shape
    placement: Placement


class NodePlan(NamedTuple):
    """A plan for one node. Lower ``rank`` is better, comparable between nodes."""

    rank: tuple[int, ...]
    picks: tuple[Pick, ...]
